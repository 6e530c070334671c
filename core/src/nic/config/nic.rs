//! The configuration of a NIC, and how many objects it has.

use crate::nic::config::numbering::Numbering;
use crate::nic::keep_alive::limits::KeepAlive;

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
    /// packets come [by links](crate::nic::Flow::Link).
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
    /// Peers that reliable connections lead to.
    pub hosts: usize,
}
