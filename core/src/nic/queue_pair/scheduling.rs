//! The lists on which a queue pair waits for its turn, and its timer.

use crate::nic::identifiers::timer_of;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::{OwedAcknowledgement, Responder};
use crate::time::Time;

impl Common {
    /// Enters a queue pair among those that may have something to send.
    #[inline]
    pub fn activate(&mut self, pair: &mut QueuePair) {
        if !pair.active {
            pair.active = true;
            self.sendable.push_back(pair.shared.place);
        }
    }

    /// Notes that a queue pair owes its peer an answer. A refusal says all that an acknowledgement
    /// does, and more.
    #[inline]
    pub fn owe(&mut self, pair: &mut QueuePair, answer: OwedAcknowledgement) {
        match pair.responder.owed {
            OwedAcknowledgement::Nothing | OwedAcknowledgement::Ack => pair.responder.owed = answer,
            OwedAcknowledgement::Nak(_) if answer.is_fatal() => pair.responder.owed = answer,
            OwedAcknowledgement::Nak(_) => {}
        }
        self.list_owing(pair);
    }

    /// Enters a queue pair among those that put an acknowledgement off.
    #[inline]
    pub fn list_delaying(&mut self, responder: &mut Responder, place: u32) {
        if !std::mem::replace(&mut responder.is_delaying, true) {
            self.delaying.push(place);
        }
    }

    /// Enters a queue pair among those that owe their peer an answer.
    #[inline]
    pub fn list_owing(&mut self, pair: &mut QueuePair) {
        if !std::mem::replace(&mut pair.responder.is_owing, true) {
            self.owing.push_back(pair.shared.place);
        }
    }
}

impl QueuePair {
    /// Has the timer go off at the next moment that matters.
    #[inline]
    pub fn arm(&self, common: &mut Common) {
        let (r, asks_at) = (&self.requester, self.probe.map(|probe| probe.again));
        let times = [self.responder.look_at, r.retry_at, r.resume_at, asks_at];
        if let Some(at) = times.into_iter().flatten().min() {
            common.timers.arm(timer_of(self.shared.place), at);
        }
    }

    /// Makes sure that the timer goes off at `at` at the latest.
    #[inline]
    pub fn arm_by(&self, at: Time, common: &mut Common) {
        common.timers.arm(timer_of(self.shared.place), at);
    }
}
