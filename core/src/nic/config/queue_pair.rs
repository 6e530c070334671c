//! The configuration of a queue pair.

use crate::nic::identifiers::{CompletionQueueId, SharedReceiveQueueId};
use crate::nic::protection::segment::Domain;
use crate::wire::Service;

/// The transport service of a queue pair: what it promises.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Transport {
    /// A reliable connection, on which every message arrives once, in order, or both sides are told
    /// that it did not.
    Reliable,
    /// An unreliable connection, without acknowledgements: a message arrives whole or is lost, and
    /// it is complete when it is sent. It carries sends and writes only.
    Unreliable,
    /// Datagrams, without a connection: each message is a packet to whichever queue pair it names.
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

/// The transport of a queue pair, where its completions go, and how deep its queues are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueuePairConfig {
    /// The transport service of the queue pair.
    pub transport: Transport,
    /// The protection domain of the queue pair.
    pub domain: Domain,
    /// The completion queue for requests.
    pub send_completions: CompletionQueueId,
    /// The completion queue for receives, which may be the same as that for requests.
    pub receive_completions: CompletionQueueId,
    /// How many requests may be outstanding.
    pub send_depth: usize,
    /// How many receives may be outstanding.
    pub receive_depth: usize,
    /// The shared receive queue to take receives from, instead of a receive queue of the queue
    /// pair's own.
    pub shared_receives: Option<SharedReceiveQueueId>,
}

impl QueuePairConfig {
    /// Makes the configuration of a reliable connection with queues of 64 entries, whose
    /// completions all go to one queue.
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
