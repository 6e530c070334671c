//! Where a queue pair takes its receives from: a queue of its own, or one that it shares.
//!
//! A shared queue belongs to one completion queue, and so do all queue pairs that draw from it. It
//! is not flushed when one of them breaks: what it holds is for the others.

use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::protection::segment::Domain;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::ring::Consumer;

pub(crate) enum Receives {
    Own(Consumer<ReceiveRequest>),
    Shared(SharedReceiveQueueId),
}

/// The NIC's end of a shared receive queue.
pub(crate) struct SharedReceives {
    pub ring: Consumer<ReceiveRequest>,
    pub domain: Domain,
    /// The completion queue of all who draw from it, and how many these are.
    pub completions: u32,
    pub users: usize,
    /// Below how many receives to tell, once.
    pub low_limit: usize,
    /// Whether there is an event that nobody has taken yet.
    pub event_pending: bool,
}

impl Receives {
    /// How many wait in a queue of one's own; those of others are promised to nobody.
    #[inline]
    pub fn waiting(&self) -> usize {
        match self {
            Self::Own(ring) => ring.waiting(),
            Self::Shared(_) => 0,
        }
    }

    #[inline]
    pub fn are_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Takes one's own next receive.
    #[inline]
    pub fn pop_own(&mut self) -> Option<ReceiveRequest> {
        match self {
            Self::Own(ring) => ring.pop(),
            Self::Shared(_) => None,
        }
    }
}
