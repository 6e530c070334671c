//! Receives of a queue pair: the NIC's end of a receive queue of its own, or of a shared one.
//!
//! A shared receive queue belongs to one completion queue, and so do all queue pairs that draw from
//! it. It is not flushed when one of them breaks: its receives are for the others.

use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::protection::segment::Domain;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::ring::Consumer;

/// The queue that a queue pair takes its receives from.
pub(crate) enum Receives {
    /// A receive queue of the queue pair's own.
    Own(Consumer<ReceiveRequest>),
    /// A receive queue that several queue pairs share.
    Shared(SharedReceiveQueueId),
}

/// The NIC's end of a shared receive queue.
pub(crate) struct SharedReceives {
    pub ring: Consumer<ReceiveRequest>,
    pub domain: Domain,
    /// The completion queue of all queue pairs that draw from the queue.
    pub completions: u32,
    /// How many queue pairs draw from the queue.
    pub users: usize,
    /// The number of receives below which an event is raised, once.
    pub low_limit: usize,
    /// Whether an event of this queue waits to be taken.
    pub event_pending: bool,
}

impl Receives {
    /// How many receives wait in a queue of the queue pair's own. Those of a shared queue are
    /// promised to nobody, and count as none.
    #[inline]
    pub fn waiting(&self) -> usize {
        match self {
            Self::Own(ring) => ring.waiting(),
            Self::Shared(_) => 0,
        }
    }

    /// Whether the receives come from a shared receive queue.
    #[inline]
    pub fn are_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Takes the next receive from a queue of the queue pair's own.
    #[inline]
    pub fn pop_own(&mut self) -> Option<ReceiveRequest> {
        match self {
            Self::Own(ring) => ring.pop(),
            Self::Shared(_) => None,
        }
    }
}
