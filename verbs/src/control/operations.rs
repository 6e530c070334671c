//! Control operations that a program queues and does not wait for.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::cm::ConnectionId;
use doorbell_core::nic::{
    self, AddressId, CompletionQueue, CompletionQueueId, Lkey, MappingId, SharedReceiveQueueId,
    WorkRequest,
};

use super::listeners::Listening;
use crate::link::{Link, Way};
use crate::sync::{AtomicBool, Mutex, Ordering, locked};

/// A change of an object of the NIC that its program does not wait for, as queued for the thread
/// that holds the NIC.
pub(crate) enum ControlOp {
    /// Arm a completion queue, whose reader is about to sleep.
    ArmCompletions(CompletionQueueId),
    /// End a registration that was dropped.
    Deregister(Lkey),
    /// Probe the peer of a connection.
    Probe(Arc<Link>),
    /// Unmap the memory of a peer.
    Unmap(MappingId),
    /// Carry out the requests of a send queue that was dropped.
    Linger(LingeringQueue),
    /// Take down a queue pair that was dropped.
    DropQueuePair(DroppedQueuePair),
    /// Take down a completion queue that was dropped.
    DropCompletionQueue(CompletionQueueId, CompletionQueue),
    /// Take down a shared receive queue that was dropped.
    DropSharedReceiveQueue(SharedReceiveQueueId),
    /// Forget the address of a destination of datagrams.
    DropAddress(AddressId, Way),
    /// Reject a peer's request for a connection, since it was dropped undecided.
    Reject(ConnectionId),
    /// Stop a listener that was dropped.
    StopListening(Listening),
}

/// A send queue that is to linger, as its program leaves it.
pub(crate) struct LingeringQueue {
    pub link: Arc<Link>,
    /// The program's end of the queue.
    pub queue: nic::SendQueue,
    /// Requests for which the queue had no room, the first to be posted first.
    pub rest: VecDeque<WorkRequest>,
    /// The longest time for which the requests are carried out.
    pub within: Duration,
    /// The private data with which the connection ends then.
    pub private: Box<[u8]>,
}

/// A queue pair that its program has dropped.
pub(crate) struct DroppedQueuePair {
    pub link: Arc<Link>,
    /// The program's ends of the two queues.
    pub ends: Box<dyn Any + Send>,
}

/// The queue of control operations. It is bounded by the number of objects: each is dropped once,
/// each reader sleeps once, and each connection has at most one probe that waits to begin.
#[derive(Default)]
pub(crate) struct ControlQueue {
    any: AtomicBool,
    list: Mutex<VecDeque<ControlOp>>,
}

impl ControlQueue {
    pub fn add(&self, operation: ControlOp) {
        locked(&self.list).push_back(operation);
        self.any.store(true, Ordering::Release);
    }

    pub fn len(&self) -> usize {
        locked(&self.list).len()
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes the next operation. The others stay, in case the operation panics.
    pub fn next(&self) -> Option<ControlOp> {
        let mut list = locked(&self.list);
        let next = list.pop_front();
        if list.is_empty() {
            self.any.store(false, Ordering::Relaxed);
        }
        next
    }
}
