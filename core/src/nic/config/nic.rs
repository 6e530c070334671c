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
    /// The most addresses that are kept for datagrams.
    pub addresses: usize,
    /// The queue pair numbers that belong to this NIC.
    pub numbering: Numbering,
    /// How long peers may be silent. A lossless device itself reports that a peer has gone.
    pub keep_alive: KeepAlive,
    /// Whether the device never loses, repeats or reorders packets, and reports how far the peer
    /// has taken them. Its packets come [by links](crate::nic::Flow::Link).
    pub lossless: bool,
    /// Whether frames hold several packets, all of one length. Then a long write of a reliable
    /// connection is sent as several writes of one packet each. Otherwise its first packet would be
    /// longer than the others, since it alone has an RETH: no more than one could follow it in its
    /// frame, and nothing could precede it. A write that is refused may have written what comes
    /// before the byte that it is refused for.
    pub runs: bool,
    /// The most packets that are kept from beyond gaps, of all queue pairs whose peers share
    /// [selective repeat](crate::nic::Connection::selective). Each takes as much memory as it has
    /// payload, from when it is first needed until the NIC is dropped. What comes when so many are
    /// kept is dropped, and has to be sent again.
    pub held_packets: usize,
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
            held_packets: 4096,
        }
    }
}

crate::counted! {
    /// How many objects of each kind a NIC has.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(default))]
    pub struct Objects {
        /// How many queue pairs there are.
        pub queue_pairs: usize,
        /// How many completion queues there are.
        pub completion_queues: usize,
        /// How many shared receive queues there are.
        pub shared_receive_queues: usize,
        /// How many registrations of memory there are.
        pub registrations: usize,
        /// How many addresses are kept for datagrams.
        pub addresses: usize,
        /// How many peers the reliable connections lead to.
        pub hosts: usize,
    }
}
