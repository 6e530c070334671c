//! What a NIC has counted.

use doorbell_core::{cm, nic};

/// What a NIC has counted since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Packets and requests: what was dropped, repeated, retried, and why.
    pub nic: nic::Counters,
    /// Frames.
    pub device: doorbell_transports::Statistics,
    /// Connections.
    pub connections: cm::Counters,
    /// How many objects there are of each kind.
    pub objects: nic::Objects,
}
