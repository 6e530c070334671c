//! The configuration of a queue pair.

use crate::nic::identifiers::{CompletionQueueId, SharedReceiveQueueId};
use crate::nic::protection::segment::Domain;
use crate::wire::Service;

/// What a queue pair promises.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Transport {
    /// A connection: every message arrives once, in order, or both sides hear that it did not.
    Reliable,
    /// A connection without answers: a message arrives whole, or is lost, and is complete when it
    /// is sent. Sends and writes only.
    Unreliable,
    /// No connection: each message is a packet, to whomever it names.
    Datagram,
}

impl Transport {
    pub(crate) const fn service(self) -> Service {
        match self {
            Self::Reliable => Service::Rc,
            Self::Unreliable => Service::Uc,
            Self::Datagram => Service::Ud,
        }
    }
}

/// What a queue pair is, where its completions go, and how deep its queues are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueuePairConfig {
    /// What it promises.
    pub transport: Transport,
    /// The protection domain.
    pub domain: Domain,
    /// For the completions of sends.
    pub send_completions: CompletionQueueId,
    /// For the completions of receives; it may be the same.
    pub receive_completions: CompletionQueueId,
    /// How many sends may be outstanding.
    pub send_depth: usize,
    /// How many receives may be outstanding.
    pub receive_depth: usize,
    /// Where to take receives from instead of a queue of one's own.
    pub shared_receives: Option<SharedReceiveQueueId>,
}

impl QueuePairConfig {
    /// A reliable connection's, with queues of 64, whose completions all go to one queue.
    pub fn new(domain: Domain, completions: CompletionQueueId) -> Self {
        Self {
            transport: Transport::Reliable,
            domain,
            send_completions: completions,
            receive_completions: completions,
            send_depth: 64,
            receive_depth: 64,
            shared_receives: None,
        }
    }
}
