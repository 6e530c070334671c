//! Errors of a NIC's objects: why an object is not made, changed or taken down.

use thiserror::Error;

use crate::nic::config::queue_pair_state::State;
use crate::nic::identifiers::{AddressId, CompletionQueueId, SharedReceiveQueueId};
use crate::wire::Qpn;

/// The most entries that a queue may have.
pub(crate) const DEEPEST: usize = 1 << 24;

/// Why the state of a queue pair was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ChangeError {
    /// The NIC has no queue pair of this number.
    #[error("{0} is not a queue pair of this NIC")]
    NoSuchQueuePair(Qpn),
    /// No transition leads from the queue pair's state to the other.
    #[error("{qpn} can't go from {from:?} to {to:?}")]
    Transition {
        /// The number of the queue pair.
        qpn: Qpn,
        /// The state that the queue pair is in.
        from: State,
        /// The state that was asked for.
        to: State,
    },
    /// The transition is not for queue pairs of this transport.
    #[error(
        "{qpn} can't be changed so: connections are for those that are no datagram queue pairs"
    )]
    Transport {
        /// The number of the queue pair.
        qpn: Qpn,
    },
    /// The path leads to another host than the queue pair's peer.
    #[error("{qpn} is not connected to where this path leads: a connection is not given away")]
    OtherPeer {
        /// The number of the queue pair.
        qpn: Qpn,
    },
    /// Requests of the queue pair are outstanding.
    #[error(
        "{qpn} has {outstanding} requests outstanding: go to the error state and poll for them first"
    )]
    Outstanding {
        /// The number of the queue pair.
        qpn: Qpn,
        /// How many requests are outstanding.
        outstanding: usize,
    },
    /// An end of the queue pair belongs to another NIC.
    #[error("{0} is a queue pair of another NIC, which is the one to reset it")]
    OfAnotherNic(Qpn),
    /// The two ends belong to different queue pairs.
    #[error(
        "the SendQueue is {send}'s and the ReceiveQueue {receive}'s: a reset takes both of one"
    )]
    OfTwo {
        /// The queue pair that requests are posted to.
        send: Qpn,
        /// The queue pair that receives are posted to.
        receive: Qpn,
    },
    /// The window of packets is too small or too large.
    #[error("a window of {0} packets: it must be from 1 to 8388607, half the sequence numbers")]
    Window(u32),
}

/// Why an object was not made, or not taken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ResourceError {
    /// Every entry of the table of addresses is taken.
    #[error("all {0} addresses of this NIC are taken: drop some")]
    AddressesFull(usize),
    /// The NIC has no shared receive queue of this identifier.
    #[error("{0:?} is not a shared receive queue of this NIC")]
    NoSuchSharedQueue(SharedReceiveQueueId),
    /// The shared receive queue can't be used by this queue pair.
    #[error(
        "{0:?} is of another domain than the queue pair, or its receives complete in another queue"
    )]
    OtherShared(SharedReceiveQueueId),
    /// Queue pairs draw from the shared receive queue.
    #[error("{users} queue pairs draw from {queue:?}: take those down first")]
    SharedInUse {
        /// The shared receive queue that is in use.
        queue: SharedReceiveQueueId,
        /// How many queue pairs draw from the queue.
        users: usize,
    },
    /// The NIC keeps no address of this identifier.
    #[error("{0:?} is not an address of this NIC")]
    NoSuchAddress(AddressId),
    /// Every entry of the table of queue pairs is taken.
    #[error(
        "all {0} queue pairs of this NIC are taken: take some down, or configure more \
             (`Config::queue_pairs`)"
    )]
    QueuePairsFull(usize),
    /// The NIC has no completion queue of this identifier.
    #[error("{0:?} is not a completion queue of this NIC")]
    NoSuchCompletionQueue(CompletionQueueId),
    /// The number of entries is zero, or more than any queue may have.
    #[error("a queue of {0} entries: it must have from 1 to {DEEPEST}")]
    Depth(usize),
    /// A completion queue has too few entries. Each receive queue that ends in it has one entry
    /// that nothing else takes, and sends need one more.
    #[error("{queue:?} has {has} entries, and needs {needs}: one a receive queue, one for sends")]
    QueueTooSmall {
        /// The completion queue that is too small.
        queue: CompletionQueueId,
        /// How many entries the completion queue has.
        has: usize,
        /// How many entries the completion queue needs.
        needs: usize,
    },
    /// Queues of queue pairs end in the completion queue.
    #[error("{users} queues of queue pairs end in {queue:?}: take them down first")]
    InUse {
        /// The completion queue that is in use.
        queue: CompletionQueueId,
        /// How many queues of queue pairs end in the completion queue.
        users: usize,
    },
    /// The NIC has no queue pair of this number.
    #[error("{0} is not a queue pair of this NIC")]
    NoSuchQueuePair(Qpn),
    /// Not all requests of the queue pair could be flushed.
    #[error(
        "{qpn} has {outstanding} requests outstanding: poll its completion queues, which are full"
    )]
    Outstanding {
        /// The number of the queue pair.
        qpn: Qpn,
        /// How many requests are outstanding.
        outstanding: usize,
    },
    /// A program may still post to the queue pair.
    #[error("{0} can still be posted to: drop its SendQueue and its ReceiveQueue first")]
    HasEnds(Qpn),
}
