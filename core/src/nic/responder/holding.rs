//! Holding: packets from beyond a gap are kept, and are carried out in order once the gap is filled.

use crate::nic::responder::outcomes::Reply;
use crate::nic::selective::held::{Held, Kept};
use crate::nic::state::arrivals::Arrivals;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::OwedAcknowledgement;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{Packet, Psn, Report, Service};

impl QueuePair {
    /// Keeps a packet that is `ahead` numbers beyond the expected one, if there is room for it, and
    /// sees to it that the peer learns of that.
    pub(super) fn keep_beyond_gap<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        ahead: u32,
        common: &mut Common,
    ) {
        let (len, asked) = (packet.payload.len(), packet.headers.bth.ack_request());
        // What is too long to be valid takes no memory. It is refused if it comes once it is expected.
        if len > self.mtu.bytes() {
            common.counters.dropped_beyond_gaps += 1;
            return;
        }
        let Some(arrivals) = &mut self.responder.arrivals else { return };
        arrivals.newest = Some((packet.headers.bth.psn(), common.arrived));
        let held = arrivals.held.get_or_insert_with(|| Box::new(Held::new()));
        let first = held.is_empty();
        match held.keep(packet, ahead, &mut common.held) {
            Kept::Now => common.counters.kept_beyond_gaps += 1,
            Kept::Before => {
                common.counters.duplicates += 1;
                self.count_repeated();
            }
            Kept::NoRoom => {
                common.counters.dropped_beyond_gaps += 1;
                return;
            }
        }
        if first {
            return common.owe(self, OwedAcknowledgement::Ack);
        }
        self.owe_acknowledgement(len, asked, Service::Rc, common);
    }

    /// Notes that a packet has come that had come before.
    pub(super) fn count_repeated(&mut self) {
        if let Some(arrivals) = &mut self.responder.arrivals {
            arrivals.repeated = arrivals.repeated.wrapping_add(1);
        }
    }

    /// Carries out the packets that were kept and are expected now, since the one before them, which
    /// was `expected` before, has come. A packet that is refused for want of a receive is sent again
    /// by the peer.
    #[cold]
    pub(super) fn carry_out_held(&mut self, before: Psn, common: &mut Common) {
        let r = &mut self.responder;
        let moved = r.expected_psn.distance_from(before).max(0) as u32;
        if let Some(arrivals) = &mut r.arrivals {
            arrivals.newest = Some((before, common.arrived));
        }
        if let Some(held) = r.held() {
            held.drop_range(before, moved, &mut common.held);
        }
        loop {
            let expected = self.responder.expected_psn;
            let taken = self.responder.held().and_then(|held| held.take(expected));
            let Some(held) = taken else { break };
            let packet = Packet { headers: held.headers, payload: &held.payload[..] };
            let info = *packet.headers.bth.opcode().info();
            let executed = self.execute(&packet, info, common);
            match executed {
                Ok(Reply::Acknowledgement) => self.responder.accept_packet(),
                Ok(Reply::Response) => {
                    self.responder.accept_packet();
                    common.list_owing(self);
                }
                Err(refusal) => {
                    common.held.give_back(held);
                    return self.refuse_request(refusal, common);
                }
            }
            common.held.give_back(held);
            // A read takes several numbers, none of which is another packet's.
            let moved = self.responder.expected_psn.distance_from(expected).max(0) as u32;
            if let Some(held) = self.responder.held().filter(|_| moved > 1) {
                held.drop_range(expected, moved, &mut common.held);
            }
        }
        // The peer is waiting to hear that the gap is filled.
        common.owe(self, OwedAcknowledgement::Ack);
    }

    /// Drops the packets that are kept.
    pub(crate) fn drop_held(&mut self, common: &mut Common) {
        let arrivals = self.responder.arrivals.as_mut();
        if let Some(mut held) = arrivals.and_then(|arrivals| arrivals.held.take()) {
            held.clear(&mut common.held);
        }
    }

    /// The report that an acknowledgement carries: the newest packet, how long it was kept, and counts.
    pub(super) fn report(&self, arrivals: &Arrivals, now: Time) -> Report {
        let expected = self.responder.expected_psn.before();
        let (newest, at) = arrivals.newest.unwrap_or((expected, arrivals.accepted_at));
        let held = held_for(at, now);
        Report { newest, held, marked: arrivals.marked, repeated: arrivals.repeated }
    }
}

/// How long an acknowledgement was kept back, as reports say it.
pub(super) fn held_for(since: Time, now: Time) -> u32 {
    u32::try_from(now.since(since).as_nanos()).unwrap_or(u32::MAX)
}
