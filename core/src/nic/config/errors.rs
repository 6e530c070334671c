//! Why an object is not made, changed or taken down.

use thiserror::Error;

use crate::nic::config::state::State;
use crate::nic::identifiers::{AddressId, CompletionQueueId, SharedReceiveQueueId};
use crate::wire::Qpn;

/// The most entries of a queue.
pub(crate) const DEEPEST: usize = 1 << 24;

/// Why a queue pair was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ChangeError {
    /// There is no such queue pair.
    #[error("{0} is not a queue pair of this NIC")]
    NoSuchQueuePair(Qpn),
    /// There is no such way.
    #[error("{qpn} can't go from {from:?} to {to:?}")]
    Transition {
        /// The queue pair.
        qpn: Qpn,
        /// Its state.
        from: State,
        /// The state asked for.
        to: State,
    },
    /// The change is not one for a queue pair of its kind.
    #[error(
        "{qpn} can't be changed so: connections are for those that are no datagram queue pairs"
    )]
    Transport {
        /// The queue pair.
        qpn: Qpn,
    },
    /// A path to somebody else.
    #[error("{qpn} is not connected to where this path leads: a connection is not given away")]
    OtherPeer {
        /// The queue pair.
        qpn: Qpn,
    },
    /// It still has requests.
    #[error(
        "{qpn} has {outstanding} requests outstanding: go to the error state and poll for them first"
    )]
    Outstanding {
        /// The queue pair.
        qpn: Qpn,
        /// How many.
        outstanding: usize,
    },
    /// An end belongs to another NIC.
    #[error("{0} is a queue pair of another NIC, which is the one to reset it")]
    OfAnotherNic(Qpn),
    /// The two ends are not those of one queue pair.
    #[error(
        "the SendQueue is {send}'s and the ReceiveQueue {receive}'s: a reset takes both of one"
    )]
    OfTwo {
        /// The queue pair that requests are posted to.
        send: Qpn,
        /// The one that receives are posted to.
        receive: Qpn,
    },
    /// The window can't be that.
    #[error("a window of {0} packets: it must be from 1 to 8388607, half the sequence numbers")]
    Window(u32),
}

/// Why something was not made, or not taken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ResourceError {
    /// Every entry of the table of addresses is taken.
    #[error("all {0} addresses of this NIC are taken: drop some")]
    AddressesFull(usize),
    /// There is no such shared receive queue.
    #[error("{0:?} is not a shared receive queue of this NIC")]
    NoSuchSharedQueue(SharedReceiveQueueId),
    /// The shared receive queue can't be this queue pair's.
    #[error(
        "{0:?} is of another domain than the queue pair, or its receives complete in another queue"
    )]
    OtherShared(SharedReceiveQueueId),
    /// Queue pairs draw from the shared receive queue.
    #[error("{users} queue pairs draw from {queue:?}: take those down first")]
    SharedInUse {
        /// The queue.
        queue: SharedReceiveQueueId,
        /// How many queue pairs.
        users: usize,
    },
    /// There is no such address.
    #[error("{0:?} is not an address of this NIC")]
    NoSuchAddress(AddressId),
    /// The table is full.
    #[error(
        "all {0} queue pairs of this NIC are taken: take some down, or configure more \
             (`Config::queue_pairs`)"
    )]
    QueuePairsFull(usize),
    /// There is no such completion queue.
    #[error("{0:?} is not a completion queue of this NIC")]
    NoSuchCompletionQueue(CompletionQueueId),
    /// A queue of no entries holds nothing, and one of very many no computer does.
    #[error("a queue of {0} entries: it must have from 1 to {DEEPEST}")]
    Depth(usize),
    /// A completion queue has too few entries. Each receive queue that ends in it has one that
    /// nothing else takes, and what is sent needs one more.
    #[error("{queue:?} has {has} entries, and needs {needs}: one a receive queue, one for sends")]
    QueueTooSmall {
        /// The completion queue.
        queue: CompletionQueueId,
        /// How many entries it has.
        has: usize,
        /// How many it needs.
        needs: usize,
    },
    /// A completion queue is in use.
    #[error("{users} queues of queue pairs end in {queue:?}: take them down first")]
    InUse {
        /// The completion queue.
        queue: CompletionQueueId,
        /// How many.
        users: usize,
    },
    /// There is no such queue pair.
    #[error("{0} is not a queue pair of this NIC")]
    NoSuchQueuePair(Qpn),
    /// A queue pair's requests are not all flushed.
    #[error(
        "{qpn} has {outstanding} requests outstanding: poll its completion queues, which are full"
    )]
    Outstanding {
        /// The queue pair.
        qpn: Qpn,
        /// How many.
        outstanding: usize,
    },
    /// A program may still post to a queue pair.
    #[error("{0} can still be posted to: drop its SendQueue and its ReceiveQueue first")]
    HasEnds(Qpn),
}
