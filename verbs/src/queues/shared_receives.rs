//! Receives that several queue pairs draw from.

use std::fmt;

use doorbell_core::nic::{
    self, CompletionQueueId, Memory, ReceiveRequest, ResourceError, SharedReceiveQueueId,
};

use crate::error::PostReceiveError;
use crate::nic::Nic;
use crate::pair::RECEIVE;
use crate::progress::Errand;
use crate::sync::{Mutex, locked};

/// A queue of receives that several queue pairs draw from: a message takes the next one, whichever
/// of them it comes to.
///
/// A connection that is idle then needs no receives of its own.
pub struct SharedReceiveQueue {
    nic: Nic,
    id: SharedReceiveQueueId,
    completions: CompletionQueueId,
    queue: Mutex<nic::SharedReceiveQueue>,
    /// What is set in the number of each receive.
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

    /// Which one of its NIC's it is.
    pub fn id(&self) -> SharedReceiveQueueId {
        self.id
    }

    pub(crate) fn completions(&self) -> CompletionQueueId {
        self.completions
    }

    /// How many more receives there is room for.
    pub fn room(&self) -> usize {
        locked(&self.queue).room()
    }

    /// Posts a place for a message, and what names it in its completion, of which the highest bit
    /// is not for programs.
    ///
    /// # Errors
    /// When the queue is full. The receive comes back.
    pub fn post(&self, id: u64, memory: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let memory = memory.into();
        let posted = locked(&self.queue).post(ReceiveRequest { id: id | self.mark, memory });
        posted.map_err(|refused| PostReceiveError { why: refused.why, request: refused.request })
    }

    /// Asks for an [event](crate::AsyncEvent::ReceivesLow), once, when a message leaves fewer
    /// receives than `limit`.
    ///
    /// # Errors
    /// When the queue is not there any more.
    pub fn tell_low(&self, limit: usize) -> Result<(), ResourceError> {
        self.nic.shared().with(|machine| machine.control().nic.tell_low(self.id, limit))
    }
}

/// Without how many receives there is room for, while another thread posts some.
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
        self.nic.shared().run(Errand::DropShared(self.id));
    }
}
