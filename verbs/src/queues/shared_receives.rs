//! Shared receive queues, from which several queue pairs draw.

use std::fmt;

use doorbell_core::nic::{
    self, CompletionQueueId, Memory, ReceiveRequest, ResourceError, SharedReceiveQueueId,
};

use super::completions::CompletionQueue;
use crate::control::ControlOp;
use crate::dispatch::RECEIVE;
use crate::error::PostReceiveError;
use crate::nic::{Domain, Nic};
use crate::sync::{Mutex, locked};

/// A shared receive queue: a message to any of its queue pairs takes the next receive.
///
/// With a shared queue, idle connections need no receives of their own.
pub struct SharedReceiveQueue {
    nic: Nic,
    id: SharedReceiveQueueId,
    completions: CompletionQueueId,
    queue: Mutex<nic::SharedReceiveQueue>,
    /// The bits that are set in the number of each receive.
    mark: u64,
}

impl SharedReceiveQueue {
    pub(crate) fn new(
        nic: Nic,
        (id, queue): (SharedReceiveQueueId, nic::SharedReceiveQueue),
        completions: CompletionQueueId,
        for_futures: bool,
    ) -> Self {
        let mark = if for_futures { RECEIVE } else { 0 };
        Self { nic, id, completions, queue: Mutex::new(queue), mark }
    }

    /// Returns the number by which the NIC knows the queue.
    pub fn id(&self) -> SharedReceiveQueueId {
        self.id
    }

    pub(crate) fn completions(&self) -> CompletionQueueId {
        self.completions
    }

    /// Returns how many more receives there is room for.
    pub fn room(&self) -> usize {
        locked(&self.queue).room()
    }

    /// Posts memory for a message, with a number that names the receive in its completion. The
    /// highest bit of the number is reserved.
    ///
    /// # Errors
    /// Returns the receive when the queue is full.
    pub fn post(&self, id: u64, memory: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let memory = memory.into();
        let posted = locked(&self.queue).post(ReceiveRequest { id: id | self.mark, memory });
        posted.map_err(|refused| PostReceiveError { why: refused.why, request: refused.request })
    }

    /// Takes back the receive that was posted first, if no message has taken it: its number, and
    /// its memory. A program that expects fewer messages than before gets memory back by this.
    pub fn take_back(&self) -> Option<(u64, Memory)> {
        let back =
            self.nic.engine().with(|adapter| adapter.control().nic.take_back_shared(self.id));
        let ReceiveRequest { id, memory } = back.ok().flatten()?;
        Some((id & !self.mark, memory))
    }

    /// Asks for one [event](crate::AsyncEvent::ReceivesLow), when a message leaves fewer receives
    /// than `limit`.
    ///
    /// # Errors
    /// Returns an error when the queue has been taken down.
    pub fn tell_low(&self, limit: usize) -> Result<(), ResourceError> {
        self.nic.engine().with(|adapter| adapter.control().nic.tell_low(self.id, limit))
    }
}

/// Shows the room for receives unless another thread is posting some.
impl fmt::Debug for SharedReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SharedReceiveQueue");
        shown.field("id", &self.id).field("nic", &self.nic);
        if let Ok(queue) = self.queue.try_lock() {
            shown.field("room", &queue.room());
        }
        shown.finish_non_exhaustive()
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        self.nic.engine().submit(ControlOp::DropSharedReceiveQueue(self.id));
    }
}

impl Domain {
    /// Makes a shared receive queue for queue pairs whose requests are futures.
    ///
    /// # Errors
    /// Returns an error when the depth is zero.
    pub fn shared_receive_queue(&self, depth: usize) -> Result<SharedReceiveQueue, ResourceError> {
        let (made, completions) = self.nic().engine().with(|adapter| {
            let control = adapter.control();
            let completions = control.completions.0;
            control
                .nic
                .shared_receive_queue(self.id(), completions, depth)
                .map(|made| (made, completions))
        })?;
        Ok(SharedReceiveQueue::new(self.nic().clone(), made, completions, true))
    }

    /// Makes a shared receive queue whose completions go to a completion queue, for queue pairs
    /// whose program reads that queue.
    ///
    /// # Errors
    /// Returns an error when the depth is zero.
    pub fn shared_receives_to(
        &self,
        completions: &CompletionQueue,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        let id = completions.id();
        let made = self
            .nic()
            .engine()
            .with(|adapter| adapter.control().nic.shared_receive_queue(self.id(), id, depth))?;
        Ok(SharedReceiveQueue::new(self.nic().clone(), made, id, false))
    }
}
