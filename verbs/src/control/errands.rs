//! What programs want done by whoever has the NIC in hand, and do not wait for.

use std::any::Any;
use std::sync::Arc;

use doorbell_core::cm::ConnectionId;
use doorbell_core::nic::{
    AddressId, CompletionQueue, CompletionQueueId, Lkey, MappingId, SharedReceiveQueueId,
};

use super::Way;
use crate::connect::Listening;
use crate::pair::Link;
use crate::sync::{AtomicBool, Mutex, Ordering, locked};

pub(crate) enum Errand {
    /// The reader of a completion queue is about to sleep.
    Arm(CompletionQueueId),
    /// A registration was dropped.
    Deregister(Lkey),
    /// A program wants to know whether the peer of a connection is still there.
    Probe(Arc<Link>),
    /// Memory of a peer's is not to be mapped any more.
    Unmap(MappingId),
    /// A queue pair was dropped.
    Leave(Leaving),
    /// A completion queue was dropped.
    DropCompletions(CompletionQueueId, CompletionQueue),
    /// A shared receive queue was dropped.
    DropShared(SharedReceiveQueueId),
    /// Nobody sends datagrams there any more.
    Forget(AddressId, Way),
    /// Nobody has decided about a peer's request for a connection, nor will.
    Refuse(ConnectionId),
    /// A listener was dropped.
    Stop(Listening),
}

/// A queue pair whose program has let go of it.
pub(crate) struct Leaving {
    pub link: Arc<Link>,
    /// The program's ends of its queues.
    pub ends: Box<dyn Any + Send>,
}

/// Errands that wait, as many as there are objects that they can be of: each is dropped once, each
/// reader sleeps once, and of each connection one probe at most waits to begin.
#[derive(Default)]
pub(crate) struct Errands {
    any: AtomicBool,
    list: Mutex<Vec<Errand>>,
}

impl Errands {
    pub fn add(&self, errand: Errand) {
        locked(&self.list).push(errand);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn take(&self) -> Vec<Errand> {
        let mut list = locked(&self.list);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut list)
    }
}
