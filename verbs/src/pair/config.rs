//! The configuration of a queue pair whose requests are futures.

use doorbell_core::nic::{self, Rights};
use doorbell_core::wire::cm::RnrRetryCount;

use crate::queues::SharedReceiveQueue;

/// The configuration of a queue pair whose requests are futures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct QueuePairConfig {
    /// The shared receive queue to take receives from, if any: see [`share`](Self::share).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub shared_receives: Option<nic::SharedReceiveQueueId>,
    /// The most requests that may be outstanding. Further requests wait.
    pub send_depth: usize,
    /// The most receives that may be posted.
    pub receive_depth: usize,
    /// The rights of the peer, which are limited further by those of each registration.
    pub rights: Rights,
    /// The most reads and atomic operations under way at a time, each way.
    pub reads: u8,
    /// How often the peer repeats a message for which no receive is posted here, before its request
    /// fails: at most 6 times, or [`INFINITE`](RnrRetryCount::INFINITE) for as long as the
    /// connection exists. The peer is told when the connection is made in band.
    pub rnr_retries: RnrRetryCount,
}

impl Default for QueuePairConfig {
    /// Queues of 64 entries. The peer may do whatever its keys allow, and repeats messages without
    /// end.
    fn default() -> Self {
        Self {
            shared_receives: None,
            send_depth: 64,
            receive_depth: 64,
            rights: Rights::REMOTE,
            reads: 16,
            rnr_retries: RnrRetryCount::INFINITE,
        }
    }
}

impl QueuePairConfig {
    /// Takes receives from a shared receive queue.
    #[must_use]
    pub fn share(self, receives: &SharedReceiveQueue) -> Self {
        Self { shared_receives: Some(receives.id()), ..self }
    }
}
