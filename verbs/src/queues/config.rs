//! The configuration of a queue pair whose program posts to its queues.

use doorbell_core::nic::{self, Rights};
use doorbell_core::wire::cm::RnrRetryCount;

use super::completions::CompletionQueue;
use super::shared_receives::SharedReceiveQueue;

/// The configuration of a queue pair whose completions go to completion queues.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueuesConfig {
    /// Whether the connection is unreliable: a message or a write arrives whole or is lost, and
    /// completes when it is sent. See [`unreliable`](Self::unreliable).
    pub unreliable: bool,
    /// The completion queue of requests.
    pub send_completions: nic::CompletionQueueId,
    /// The completion queue of receives: see [`receives_to`](Self::receives_to).
    pub receive_completions: nic::CompletionQueueId,
    /// The shared receive queue to take receives from, if any: see [`share`](Self::share).
    pub shared_receives: Option<nic::SharedReceiveQueueId>,
    /// The most requests that may be outstanding.
    pub send_depth: usize,
    /// The most receives that may be posted.
    pub receive_depth: usize,
    /// The rights of the peer, which are limited further by those of each registration.
    pub rights: Rights,
    /// The most reads and atomic operations under way at a time, each way.
    pub reads: u8,
    /// How often the peer repeats a message for which no receive is posted here: see
    /// [`QueuePairConfig::rnr_retries`](crate::QueuePairConfig::rnr_retries).
    pub rnr_retries: RnrRetryCount,
}

impl QueuesConfig {
    /// Returns a configuration with queues of 64 entries and one completion queue for both. The
    /// peer may do whatever its keys allow, and repeats messages without end.
    pub fn new(completions: &CompletionQueue) -> Self {
        Self {
            unreliable: false,
            send_completions: completions.id(),
            receive_completions: completions.id(),
            shared_receives: None,
            send_depth: 64,
            receive_depth: 64,
            rights: Rights::REMOTE,
            reads: 16,
            rnr_retries: RnrRetryCount::INFINITE,
        }
    }

    /// Makes the connection unreliable: without acknowledgements, and for sends and writes only.
    /// Such a queue pair is connected by [exchange](crate::Unconnected::exchange).
    #[must_use]
    pub fn unreliable(self) -> Self {
        Self { unreliable: true, ..self }
    }

    /// Sends the completions of receives to a completion queue of their own.
    #[must_use]
    pub fn receives_to(self, completions: &CompletionQueue) -> Self {
        Self { receive_completions: completions.id(), ..self }
    }

    /// Takes receives from a shared queue. Their completions go to the completion queue that the
    /// shared queue was made with.
    #[must_use]
    pub fn share(self, receives: &SharedReceiveQueue) -> Self {
        let receive_completions = receives.completions();
        Self { shared_receives: Some(receives.id()), receive_completions, ..self }
    }
}
