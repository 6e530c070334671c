//! The receives that messages take, and how these are completed.

use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::queues::completion_slots::{Purpose, in_use};
use crate::nic::queues::receives::Receives;
use crate::nic::requests::completion::{Completion, Done};
use crate::nic::requests::event::Event;
use crate::nic::requests::memory::Memory;
use crate::nic::requests::work_request::{Attachment, ReceiveRequest};
use crate::nic::responder::outcomes::{ReceivedMessage, Refusal};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::Responder;
use crate::planted::{Bug, planted};
use crate::wire::Qpn;

impl Receives {
    /// Takes the next receive, and reserves a slot of a completion queue for it.
    pub fn take(&mut self, queue: u32, common: &mut Common) -> Result<ReceiveRequest, Refusal> {
        let completions = in_use(&mut common.completions, queue);
        if !completions.reserve(Purpose::Receive) {
            return Err(Refusal::NotReady);
        }
        let taken = match self {
            Self::Own(ring) => ring.pop(),
            Self::Shared(id) => common.take_shared(*id),
        };
        taken.ok_or_else(|| {
            if !planted(Bug::KeepsSlotsOfNothing) {
                in_use(&mut common.completions, queue).release(Purpose::Receive);
            }
            Refusal::NotReady
        })
    }
}

impl Common {
    /// Takes the next receive of a shared receive queue.
    fn take_shared(&mut self, id: SharedReceiveQueueId) -> Option<ReceiveRequest> {
        let taken = self.shared_receives.get_mut(id.place as usize)?.as_mut()?.ring.pop()?;
        self.raise_if_low(id);
        Some(taken)
    }

    /// Raises the event, once, that a shared receive queue has fewer receives than its limit.
    #[inline]
    pub fn raise_if_low(&mut self, id: SharedReceiveQueueId) {
        if let Some(Some(queue)) = self.shared_receives.get(id.place as usize)
            && queue.ring.waiting() < queue.low_limit
        {
            self.raise_low(id);
        }
    }

    #[cold]
    fn raise_low(&mut self, id: SharedReceiveQueueId) {
        let Some(Some(queue)) = self.shared_receives.get_mut(id.place as usize) else { return };
        queue.low_limit = if planted(Bug::TellsLowAgain) { queue.low_limit } else { 0 };
        let mut pending = queue.event_pending;
        self.raise(Event::ReceivesLow(id), &mut pending);
        if let Some(Some(queue)) = self.shared_receives.get_mut(id.place as usize) {
            queue.event_pending = pending;
        }
    }
}

impl QueuePair {
    /// Takes the receive for the next message. Its completion has a slot.
    #[inline]
    pub fn take_receive(&mut self, common: &mut Common) -> Result<ReceiveRequest, Refusal> {
        let r = &mut self.responder;
        match r.kept_receive.take() {
            Some(kept) => Ok(kept),
            None => r.receives.take(self.receive_completions, common),
        }
    }

    /// Completes a receive whose completion has a slot.
    #[inline]
    pub fn complete_receive(
        &mut self,
        receive: ReceiveRequest,
        message: ReceivedMessage,
        common: &mut Common,
    ) {
        let (qpn, queue, solicited) = (self.number(), self.receive_completions, message.solicited);
        let completion = self.responder.completion(receive, message, &mut common.keys, qpn);
        common.succeeded(queue, Purpose::Receive, solicited, completion);
    }
}

impl Responder {
    /// Counts a message as received, and makes the completion of its receive.
    #[inline(always)]
    fn completion(
        &mut self,
        receive: ReceiveRequest,
        message: ReceivedMessage,
        keys: &mut KeyTable,
        qpn: Qpn,
    ) -> Completion {
        self.msn = self.msn.add(1);
        let (ReceiveRequest { id, mut memory }, ReceivedMessage { done, len, attached, .. }) =
            (receive, message);
        if let (Memory::Buf(buf), Done::Received | Done::ReceivedDatagram { .. }) =
            (&mut memory, done)
        {
            // The buffer was filled so far, so there is room.
            let _ = buf.set_len(len as usize);
        }
        if let Attachment::Invalidate(rkey) = attached {
            keys.invalidate(rkey);
        }
        Completion { id, qpn, outcome: Ok(done), len, attached, memory }
    }
}
