//! What a queue pair with selective repeat may do with a packet, and what it has done.

use doorbell_core::nic::State;
use doorbell_core::wire::{AtomicEth, Extensions, Ipv6, Report};

use super::judge::{Arrived, Before};
use super::pair::MOST_HELD;
use super::paths::{MTU, PAIRS};
use super::world::World;

impl World {
    /// Returns whether the NIC has taken a request for a queue pair that keeps packets from beyond
    /// a gap. If so, asserts that the request was the expected one, that behind it the packets were
    /// carried out that were kept, in order, and that the effect of each was allowed. If not,
    /// asserts that the request was kept if it had to be.
    pub(super) fn judge_selective(
        &mut self,
        index: usize,
        arrived: &Arrived<'_>,
        before: &Before,
    ) -> bool {
        let (after, before_it) = (*self.nic.counters(), &before.counters);
        assert_eq!(after.sequence_naks_sent, before_it.sequence_naks_sent, "a gap was refused");
        let Some(qpn) = self.pairs[index].qpn else { return false };
        // A broken queue pair may have gone back to a read that it could not answer.
        let was_broken = before.state == Some(State::Error);
        let Some(expects) = self.nic.expected_psn(qpn).filter(|_| !was_broken) else {
            return false;
        };
        self.judge_holding(index, arrived, before);
        let psn = arrived.headers.bth.psn();
        let expected = self.port.lines[index].expected;
        if expects == expected {
            return false;
        }
        assert_eq!(psn, expected, "out of its turn");
        self.took(index, arrived, before);
        self.port.lines[index].drop_passed();
        while self.port.lines[index].expected != expects {
            self.took_held(index);
        }
        let refused = after.rnr_naks_sent > before_it.rnr_naks_sent
            || after.fatal_naks_sent > before_it.fatal_naks_sent;
        let next = self.port.lines[index].held.remove(&expects.get());
        assert!(refused || next.is_none(), "the packet that is expected is kept");
        true
    }

    /// Judges whether a packet from beyond a gap was kept: it was, if it had not been kept before
    /// and there was room. No queue pair keeps more packets than are left for others.
    fn judge_holding(&mut self, index: usize, arrived: &Arrived<'_>, before: &Before) {
        let (after, before) = (self.nic.counters(), &before.counters);
        let kept = after.kept_beyond_gaps > before.kept_beyond_gaps;
        let dropped = after.dropped_beyond_gaps > before.dropped_beyond_gaps;
        let held: usize = self.port.lines.iter().map(|line| line.held.len()).sum();
        let (psn, line) = (arrived.headers.bth.psn(), &mut self.port.lines[index]);
        let ahead = psn.distance_from(line.expected);
        let has_room = line.held.len() < MOST_HELD - held;
        let fits = arrived.payload.len() <= MTU.bytes() && ahead < Report::MOST_BITS as i32;
        if kept {
            assert!(ahead > 0 && fits && has_room, "a packet was kept, {ahead} ahead");
            let packet = (arrived.headers, arrived.payload.to_vec());
            assert!(line.held.insert(psn.get(), packet).is_none(), "a packet was kept twice");
        }
        assert!(!dropped || !fits || !has_room, "there was room, {ahead} ahead");
        if after.out_of_sequence > before.out_of_sequence && !dropped {
            assert!(line.held.contains_key(&psn.get()), "a packet from beyond a gap was lost");
        }
    }

    /// Notes that the packet that was kept and is expected now was carried out.
    fn took_held(&mut self, index: usize) {
        let line = &mut self.port.lines[index];
        let held = line.held.remove(&line.expected.get());
        let (headers, payload) = held.expect("what was not kept was carried out");
        let word = match headers.extensions {
            Extensions::Atomic(AtomicEth { address, rkey, .. }) => {
                self.port.memory.supposed_word(self.pairs[index].domain, (rkey, address))
            }
            _ => None,
        };
        let arrived = Arrived { headers, payload: &payload, network: [0; Ipv6::LEN] };
        let (counters, held) = (*self.nic.counters(), true);
        let before = Before { counters, state: None, word, held };
        self.took(index, &arrived, &before);
        self.port.lines[index].drop_passed();
    }

    /// Forgets the packets that were kept for queue pairs that are broken by now, or gone.
    pub(super) fn forget_held(&mut self) {
        for index in 0..PAIRS {
            let state = self.pairs[index].qpn.and_then(|qpn| self.nic.state(qpn));
            if matches!(state, None | Some(State::Reset | State::Error)) {
                self.port.lines[index].held.clear();
            }
        }
    }

    /// Asserts that each queue pair which has kept packets and did not name them is broken.
    pub(super) fn check_silent(&mut self) {
        self.forget_held();
        for &index in &self.port.pushed.silent {
            let held = &self.port.lines[index].held;
            assert!(held.is_empty(), "{:?} are kept, and nobody is told", held.keys());
        }
    }
}
