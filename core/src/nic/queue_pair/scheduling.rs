//! Scheduling: the lists in which a queue pair waits for its turn, and its timer.

use crate::nic::identifiers::timer_of;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::{OwedAcknowledgement, Responder};
use crate::time::Time;

impl Common {
    /// Enters a queue pair in the list of those that may have something to send.
    #[inline]
    pub fn activate(&mut self, pair: &mut QueuePair) {
        if !pair.active {
            pair.active = true;
            self.sendable.push_back(pair.shared.place);
        }
    }

    /// Notes that a queue pair owes its peer an acknowledgement. A NAK says all that a positive
    /// acknowledgement does, and more.
    #[inline]
    pub fn owe(&mut self, pair: &mut QueuePair, acknowledgement: OwedAcknowledgement) {
        match pair.responder.owed {
            OwedAcknowledgement::Nothing | OwedAcknowledgement::Ack => {
                pair.responder.owed = acknowledgement;
            }
            OwedAcknowledgement::Nak(_) if acknowledgement.is_fatal() => {
                pair.responder.owed = acknowledgement;
            }
            OwedAcknowledgement::Nak(_) => {}
        }
        self.list_owing(pair);
    }

    /// Enters a queue pair in the list of those that delay an acknowledgement.
    #[inline]
    pub fn list_delaying(&mut self, responder: &mut Responder, place: u32) {
        if !std::mem::replace(&mut responder.is_delaying, true) {
            self.delaying.push(place);
        }
    }

    /// Enters a queue pair in the list of those that owe their peer a packet.
    #[inline]
    pub fn list_owing(&mut self, pair: &mut QueuePair) {
        if !std::mem::replace(&mut pair.responder.is_owing, true) {
            self.owing.push_back(pair.shared.place);
        }
    }
}

impl QueuePair {
    /// Arms the timer for the next moment at which something is to be done.
    #[inline]
    pub fn arm(&self, common: &mut Common) {
        let (r, probe_at) = (&self.requester, self.probe.map(|probe| probe.again));
        let suspects_at = r.repair.as_ref().and_then(|repair| repair.suspects_at());
        let paced = r.control.as_ref().and_then(|control| control.waits_until(common.now));
        let times = [self.responder.look_at, r.retry_at, r.resume_at, probe_at, suspects_at, paced];
        if let Some(at) = times.into_iter().flatten().min() {
            common.timers.arm(timer_of(self.shared.place), at);
        }
    }

    /// Makes sure that the timer expires at `at` at the latest.
    #[inline]
    pub fn arm_by(&self, at: Time, common: &mut Common) {
        common.timers.arm(timer_of(self.shared.place), at);
    }
}
