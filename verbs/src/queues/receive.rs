//! The receive queue of a queue pair.

use std::fmt;
use std::sync::Arc;

use doorbell_core::nic::{self, Memory, ReceiveRequest, Refused};
use doorbell_core::wire::Qpn;

use crate::connect::QueuePairOwner;

/// The receive queue of a queue pair.
pub struct ReceiveQueue {
    queue: nic::ReceiveQueue,
    keeps: Arc<QueuePairOwner>,
}

impl ReceiveQueue {
    /// Makes the program's end of the queue, which keeps the queue pair until it is dropped.
    pub(super) fn new(queue: nic::ReceiveQueue, keeps: Arc<QueuePairOwner>) -> Self {
        Self { queue, keeps }
    }
}

impl fmt::Debug for ReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

impl ReceiveQueue {
    /// Returns the number of the queue pair.
    pub fn qpn(&self) -> Qpn {
        self.queue.qpn()
    }

    /// Returns how many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Posts memory for a message, with a number that names the receive in its completion.
    ///
    /// # Errors
    /// Returns the receive when the queue is full, or when receives come from a shared queue.
    #[inline]
    pub fn post(
        &mut self,
        id: u64,
        memory: impl Into<Memory>,
    ) -> Result<(), Refused<ReceiveRequest>> {
        self.queue.post(ReceiveRequest { id, memory: memory.into() })?;
        if self.queue.is_flushed() {
            self.keeps.connection.nic().engine().ring();
        }
        Ok(())
    }
}
