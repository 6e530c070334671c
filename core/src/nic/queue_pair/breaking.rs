//! Breaking: how a queue pair breaks, and how its requests and receives are flushed.

use std::time::Duration;

use crate::nic::config::queue_pair_state::State;
use crate::nic::identifiers::timer_of;
use crate::nic::queues::completion_slots::Purpose;
use crate::nic::requests::completion::Completion;
use crate::nic::requests::event::Event;
use crate::nic::requests::failure::{Cause, Failure};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::OwedAcknowledgement;
use crate::nic::state::turns::RequesterTurn;
use crate::planted::{Bug, planted};
use crate::wire::{Nak, Syndrome};

/// How long after a queue pair broke it is flushed once more.
const FLUSHED_AGAIN: Duration = Duration::from_millis(1);

impl QueuePair {
    /// Breaks the queue pair: what is posted is flushed as its completion queues have free slots.
    #[cold]
    pub fn break_with(&mut self, cause: Cause, blamed: Blamed, common: &mut Common) {
        if self.state == State::Error {
            return;
        }
        tracing::debug!(qpn = self.number().get(), %cause, "broken");
        (self.cause, self.blamed) = (cause, blamed);
        self.enter(State::Error);
        self.requester.stop();
        self.drop_held(common);
        common.leave_peer(&mut self.peer_id);
        (self.responder.look_at, self.responder.keep_alive_due, self.probe) = (None, false, None);
        // What was requested before a refused request is answered before the NAK is sent.
        if !self.responder.owed.is_fatal() {
            self.drop_responses(common);
        }
        // A program that posts a receive at this moment may still see the state before, and not
        // ring the doorbell; and the receive may not be seen yet when the queue pair is first
        // flushed. Later, one of the two is seen.
        common.timers.arm(timer_of(self.shared.place), common.now + FLUSHED_AGAIN);
        common.raise(Event::Broken(self.number(), cause), &mut self.broken_pending);
        common.activate(self);
    }

    /// Flushes as many requests and receives as there are free slots for their completions.
    pub fn flush(&mut self, common: &mut Common) -> RequesterTurn {
        match self.flush_sends(common) & self.flush_receives(common) {
            true => RequesterTurn::Idle,
            false => RequesterTurn::Starved,
        }
    }

    /// Returns the failure of the next request or receive. One is blamed at most, and only once.
    fn failure_of(&mut self, which: Blamed) -> Failure {
        match (self.blamed, which) {
            (Blamed::Request(before @ 1..), Blamed::Request(_)) => {
                self.blamed = Blamed::Request(before - 1);
            }
            (blamed, which) if blamed == which => {
                self.blamed = Blamed::Nothing;
                return Failure::Broke(self.cause);
            }
            _ => {}
        }
        Failure::Flushed(self.cause)
    }

    /// Flushes the requests that were posted. Returns whether all of them were flushed.
    fn flush_sends(&mut self, common: &mut Common) -> bool {
        let (queue, qpn) = (self.send_completions, self.number());
        while self.requester.outstanding() > 0 {
            let reserved = self.requester.begun > 0 || common.reserve(queue, Purpose::Flush);
            if !reserved {
                return false;
            }
            let failure = self.failure_of(Blamed::Request(0));
            let Some(posted) = self.requester.front() else { break };
            let (id, memory) = (posted.request.id, posted.request.data.take_memory());
            common.failed(queue, Purpose::Flush, Completion::failed(id, qpn, failure, memory));
            self.requester.drop_front();
        }
        true
    }

    /// Flushes the receives that were posted. Returns whether all of them were flushed.
    fn flush_receives(&mut self, common: &mut Common) -> bool {
        let (queue, qpn, cause) = (self.receive_completions, self.number(), self.cause);
        if let Some(receive) = self.responder.take_unfinished() {
            let failure = self.failure_of(Blamed::Receive);
            let completion = Completion::failed(receive.id, qpn, failure, receive.memory);
            common.failed(queue, Purpose::Receive, completion);
        }
        if self.responder.shares()
            && !self.last_receive_reported
            && !planted(Bug::TellsNoLastReceive)
        {
            self.last_receive_reported = true;
            common.raise(Event::LastReceive(qpn), &mut self.last_receive_pending);
        }
        while self.responder.outstanding() > 0 {
            if !common.reserve(queue, Purpose::Flush) {
                return false;
            }
            let Some(receive) = self.responder.pop_own_receive() else {
                common.release(queue, Purpose::Flush);
                break;
            };
            let failure = Failure::Flushed(cause);
            let completion = Completion::failed(receive.id, qpn, failure, receive.memory);
            common.failed(queue, Purpose::Flush, completion);
        }
        true
    }

    /// Drops the responses that the peer is owed. On a lossless device the peer would wait for them
    /// for ever, and so it is sent a NAK.
    pub fn drop_responses(&mut self, common: &mut Common) {
        let first = self.responder.resources.front().map(|owed| owed.response.psn());
        self.responder.resources.clear();
        if let Some(psn) = first.filter(|_| common.lossless) {
            self.responder.expected_psn = psn;
            common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(Nak::RemoteOperation)));
        }
    }
}
