//! Why something is not made, or not taken down.

use thiserror::Error;

use crate::wire::Qpn;

use super::common::{AddressId, CompletionQueueId};
use super::receives::SharedReceiveQueueId;
use super::resources::DEEPEST;

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
