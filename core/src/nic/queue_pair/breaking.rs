//! How a queue pair breaks, and how its requests and receives are flushed.

use std::time::Duration;

use crate::nic::config::state::State;
use crate::nic::identifiers::timer_of;
use crate::nic::queues::completions::Purpose;
use crate::nic::requests::completion::Completion;
use crate::nic::requests::event::Event;
use crate::nic::requests::failure::{Cause, Failure};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::OwedAcknowledgement;
use crate::nic::state::turns::RequesterTurn;
use crate::planted::{Bug, planted};
use crate::wire::{Nak, Syndrome};

/// After how long a broken queue pair is flushed once more.
const FLUSHED_AGAIN: Duration = Duration::from_millis(1);

impl QueuePair {
    /// Breaks the queue pair: what is posted is flushed, by and by, as its completions find room.
    #[cold]
    pub fn break_with(&mut self, cause: Cause, blamed: Blamed, common: &mut Common) {
        if self.state == State::Error {
            return;
        }
        tracing::debug!(qpn = self.number().get(), %cause, "broken");
        (self.cause, self.blamed) = (cause, blamed);
        self.enter(State::Error);
        self.requester.stop();
        common.leave_peer(&mut self.peer_id);
        (self.responder.look_at, self.responder.keep_alive_due, self.probe) = (None, false, None);
        // What was asked for before a request was refused is answered before the refusal.
        if !self.responder.owed.is_fatal() {
            self.drop_responses(common);
        }
        // A program that posts a receive at this moment may see the state before, and not ring; and
        // what it posts may not be seen yet when it is first flushed. Later, one of them is.
        common.timers.arm(timer_of(self.shared.place), common.now + FLUSHED_AGAIN);
        common.raise(Event::Broken(self.number(), cause), &mut self.broken_pending);
        common.activate(self);
    }

    /// Flushes what there is room to tell of.
    pub fn flush(&mut self, common: &mut Common) -> RequesterTurn {
        match self.flush_sends(common) & self.flush_receives(common) {
            true => RequesterTurn::Idle,
            false => RequesterTurn::Starved,
        }
    }

    /// Why the next of these was not carried out: it is blamed once, if at all.
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

    /// Drops what is owed to the peer. One whose device can't lose would wait for it for ever: it
    /// is told.
    pub fn drop_responses(&mut self, common: &mut Common) {
        let first = self.responder.resources.owed.front().map(|owed| owed.response.psn());
        self.responder.resources.clear();
        if let Some(psn) = first.filter(|_| common.lossless) {
            self.responder.expected_psn = psn;
            common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(Nak::RemoteOperation)));
        }
    }
}
