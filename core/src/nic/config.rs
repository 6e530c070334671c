//! What a NIC and a queue pair are to be like, and what one gets.

use crate::wire::{Qpn, Service};

use super::common::CompletionQueueId;
use super::hosts::KeepAlive;
use super::keys::Domain;
use super::numbering::Numbering;
use super::queues::{ReceiveQueue, SendQueue};
use super::receives::SharedReceiveQueueId;

/// How large a NIC's tables are, and what its device is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The most queue pairs, at least one; the numbering may allow fewer.
    pub queue_pairs: usize,
    /// The most registrations, rounded up to a power of two; from 1 to 2²⁰.
    pub registrations: usize,
    /// The most addresses that datagrams are sent to.
    pub addresses: usize,
    /// Which queue pair numbers are this NIC's.
    pub numbering: Numbering,
    /// How long peers may be silent. A device that can't lose sees to that itself.
    pub keep_alive: KeepAlive,
    /// Whether the device can't lose, repeat or reorder, and tells how far packets were taken. Its
    /// packets come [by links](super::Flow::Link).
    pub lossless: bool,
    /// Whether frames hold several packets, which must be of one length. Then long writes of
    /// reliable connections go as several, a packet each. The first packet of one is longer than
    /// the others, since it alone says where to: no more than one could follow it in its frame, and
    /// nothing else precede it. A write that is refused may have written what comes before the byte
    /// that it is refused for.
    pub runs: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queue_pairs: 1024,
            registrations: 4096,
            addresses: 1024,
            numbering: Numbering::default(),
            keep_alive: KeepAlive::default(),
            lossless: false,
            runs: false,
        }
    }
}

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
    pub(super) const fn service(self) -> Service {
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

/// How many objects a NIC has of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Objects {
    /// Queue pairs.
    pub queue_pairs: usize,
    /// Completion queues.
    pub completion_queues: usize,
    /// Shared receive queues.
    pub shared_receive_queues: usize,
    /// Registrations of memory.
    pub registrations: usize,
    /// Addresses that datagrams go to.
    pub addresses: usize,
    /// Hosts that reliable connections lead to.
    pub hosts: usize,
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

/// A queue pair's ends for its program. They are to be dropped before it is
/// [taken down](super::Nic::drop_queue_pair).
#[derive(Debug)]
pub struct QueuePairEnds {
    /// Its number, which the peer must be told.
    pub qpn: Qpn,
    /// Where sends and writes are posted.
    pub send: SendQueue,
    /// Where receives are posted.
    pub receive: ReceiveQueue,
}
