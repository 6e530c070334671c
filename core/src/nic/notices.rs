//! What a link is told of packets that no queue pair took.
//!
//! A lossless device says that a packet was delivered, and its sender takes that for done. A queue
//! pair refuses what it does not take. But a packet may come for one that is not there, or is not
//! connected, or for a connection that it no longer has; and then nobody would say so. So the NIC
//! tells the link: a notice names packets by their numbers, and the queue pair that they were for.
//! The NIC over there breaks whoever has one of them under way.
//!
//! A notice that waits is owed like an answer, and so it is there before the progress that it
//! contradicts. On the wire it is an acknowledgement to queue pair 0, which no connection has.

use std::collections::VecDeque;

use crate::encap::{Path, PathId};
use crate::payload::Payload;
use crate::wire::{
    Aeth, AtomicValue, Bth, Extensions, Headers, Msn, Nak, Opcode, OpcodeInfo, Packet, Psn, Qpn,
    Service, Syndrome,
};

use super::Nic;
use super::common::Common;
use super::completion::Cause;
use super::device::{Flow, Outbox};
use super::pair::{Blamed, QueuePair};

/// What stands among the places of those that owe an answer, and is none: the notices.
pub(super) const LINKS: u32 = u32::MAX;

/// How many runs of packets are noted, of all links together.
const MOST_RUNS: usize = 256;

/// Where notices go.
const NOBODY: Qpn = Qpn::new(0);

/// Packets of one link that were delivered and not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Untaken {
    /// Those for a queue pair from `first` to `last`, which is less than half the circle away.
    Run { number: Qpn, first: Psn, last: Psn },
    /// More than could be noted: whatever is under way may be among them.
    Anything,
}

/// What links are yet to be told.
///
/// There are never more than [`MOST_RUNS`], and one for each link. A sender's packets follow each
/// other, so each that sends in vain takes one run until the next turn. If there are more, then
/// those of a link that brings another become one notice of anything: it breaks some that did
/// nothing wrong, but nothing passes for done that was not taken. Links are the device's, which
/// keeps more than this for each.
#[derive(Default)]
pub(super) struct Notices {
    waiting: VecDeque<(PathId, Untaken)>,
}

impl Notices {
    /// Whether a link is to be told something.
    pub fn are_for(&self, link: PathId) -> bool {
        self.waiting.iter().any(|(other, _)| *other == link)
    }

    fn add(&mut self, link: PathId, number: Qpn, psn: Psn) {
        let of_link = self.waiting.iter_mut().filter(|(other, _)| *other == link);
        for (_, untaken) in of_link {
            if untaken.takes_in(number, psn) {
                return;
            }
        }
        let mut untaken = Untaken::Run { number, first: psn, last: psn };
        if self.waiting.len() >= MOST_RUNS {
            self.waiting.retain(|(other, _)| *other != link);
            untaken = Untaken::Anything;
        }
        self.waiting.push_back((link, untaken));
    }
}

impl Untaken {
    /// Whether a packet is among these, or joins them: the next of a run does.
    fn takes_in(&mut self, number: Qpn, psn: Psn) -> bool {
        let Self::Run { number: own, first, last } = self else { return true };
        let place = psn.distance_from(*first);
        let (runs, end) = (*own == number && place >= 0, last.distance_from(*first));
        if runs && place == end + 1 {
            *last = psn;
        }
        runs && place <= end + 1
    }

    fn headers(self) -> Headers {
        let aeth = Aeth { syndrome: Syndrome::nak(Nak::RemoteOperation), msn: Msn::new(0) };
        match self {
            Self::Run { number, first, last } => {
                let psn = Psn::new(number.get());
                let run = u64::from(first.get()) << 32 | u64::from(last.get());
                Headers {
                    bth: Bth::new(Opcode::RcAtomicAcknowledge, NOBODY, psn),
                    extensions: Extensions::AethAtomicAck(aeth, AtomicValue(run)),
                }
            }
            Self::Anything => Headers {
                bth: Bth::new(Opcode::RcAcknowledge, NOBODY, Psn::new(0)),
                extensions: Extensions::Aeth(aeth),
            },
        }
    }

    /// What a packet to nobody says, if it is a notice.
    fn read(headers: &Headers) -> Option<Self> {
        let Headers { bth, extensions } = headers;
        let (aeth, untaken) = match (bth.opcode(), *extensions) {
            (Opcode::RcAcknowledge, Extensions::Aeth(aeth)) => (aeth, Self::Anything),
            (Opcode::RcAtomicAcknowledge, Extensions::AethAtomicAck(aeth, AtomicValue(run))) => {
                let (first, last) = (Psn::new((run >> 32) as u32), Psn::new(run as u32));
                let number = Qpn::new(bth.psn().get());
                if last.distance_from(first) < 0 {
                    return None;
                }
                (aeth, Self::Run { number, first, last })
            }
            _ => return None,
        };
        let refuses = aeth.syndrome == Syndrome::nak(Nak::RemoteOperation);
        (refuses && bth.destination() == NOBODY).then_some(untaken)
    }
}

impl Common {
    /// Owes a link the notice that a packet was not taken.
    #[cold]
    pub fn notify(&mut self, link: PathId, number: Qpn, psn: Psn) {
        if self.notices.waiting.is_empty() {
            self.answers.push_back(LINKS);
        }
        self.notices.add(link, number, psn);
    }

    /// Sends the notices, as their turn among the answers has come, but for those whose link is
    /// full.
    ///
    /// They go behind the refusals by their link: who is refused by its own peer is to hear of that
    /// first, for that says why.
    #[cold]
    pub fn tell_links<O: Outbox>(&mut self, pairs: &[Option<Box<QueuePair>>], outbox: &mut O) {
        for _ in 0..self.notices.waiting.len() {
            let Some((link, untaken)) = self.notices.waiting.pop_front() else { break };
            let refuses = |&place: &u32| {
                let pair = pairs.get(place as usize).and_then(Option::as_deref);
                pair.is_some_and(|pair| pair.refuses() && pair.link() == Some(link))
            };
            let path = Path::link(link);
            if self.answers.iter().any(refuses) {
                self.notices.waiting.push_back((link, untaken));
            } else if self.full.has(link) || outbox.push(&path, untaken.headers(), &[][..]).is_err()
            {
                self.behind = true;
                self.full.add(link);
                self.notices.waiting.push_back((link, untaken));
            } else {
                self.counters.sent += 1;
                self.counters.notices_sent += 1;
            }
        }
        if !self.notices.waiting.is_empty() {
            self.answers.push_back(LINKS);
        }
    }
}

impl Nic {
    /// Takes a packet for a queue pair that there is not.
    #[cold]
    pub(super) fn for_nobody<P: Payload>(&mut self, (flow, packet): (Flow<'_>, Packet<P>)) {
        let (link, headers) = (flow.link(), &packet.headers);
        let info = headers.bth.opcode().info();
        if headers.bth.destination() == Qpn::GSI {
            return self.common.for_manager(flow, &packet);
        }
        match (link, Untaken::read(headers)) {
            (Some(link), Some(untaken)) if self.common.lossless => self.noticed(link, untaken),
            _ => {
                self.common.counters.no_such_queue_pair += 1;
                self.not_taken(link, *info, headers.bth.destination(), headers.bth.psn());
            }
        }
    }

    /// Sees to it that a packet which was dropped before any queue pair had a look at it does not
    /// pass for taken.
    #[cold]
    pub(super) fn not_taken(
        &mut self,
        link: Option<PathId>,
        info: OpcodeInfo,
        number: Qpn,
        psn: Psn,
    ) {
        let request = info.service == Service::Rc && !info.is_response();
        if let Some(link) = link
            && self.common.lossless
            && request
        {
            self.common.notify(link, number, psn);
        }
    }

    /// Breaks those that a notice is about.
    fn noticed(&mut self, link: PathId, untaken: Untaken) {
        let Self { common, pairs, .. } = self;
        let mut concerned = false;
        // Whoever has something under way is among these.
        for index in 0..common.flying.len() {
            let place = common.flying[index] as usize;
            let pair = pairs[place].as_deref_mut().filter(|pair| pair.is_concerned(link, untaken));
            if let Some(pair) = pair {
                concerned = true;
                pair.break_with(Cause::NoAnswer { tries: 1 }, Blamed::Request(0), common);
            }
        }
        match concerned {
            true => common.counters.notices_received += 1,
            false => common.counters.stray_answers += 1,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// At most 256 notices wait. Those of a link that brings more become one, which stands for all of
    /// them.
    #[test]
    fn a_link_that_sends_in_vain_without_end_pushes_out_no_notice_but_its_own() {
        let (flooder, honest) = (PathId(1), PathId(2));
        let mut notices = Notices::default();
        notices.add(honest, Qpn::new(5), Psn::new(7));
        for number in 0..10_000 {
            notices.add(flooder, Qpn::new(number % 3000), Psn::new(2 * number));
            assert!(notices.waiting.len() <= MOST_RUNS, "{}", notices.waiting.len());
        }
        let of = |link| notices.waiting.iter().filter(move |(other, _)| *other == link);
        let run = Untaken::Run { number: Qpn::new(5), first: Psn::new(7), last: Psn::new(7) };
        assert!(of(honest).eq(&[(honest, run)]));
        assert!(of(flooder).eq(&[(flooder, Untaken::Anything)]));
    }
}
