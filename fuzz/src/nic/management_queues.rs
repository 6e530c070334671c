//! The management datagrams that wait in the NIC.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;
use doorbell_core::wire::Qpn;

/// The management datagrams that must wait in the NIC at present. All bytes of a datagram are
/// alike.
#[derive(Default)]
pub struct ManagementQueues {
    /// For the datagrams that have come: the sender, the link if there is one, and the byte.
    pub arrived: VecDeque<(Qpn, Option<PathId>, u8)>,
    /// For the datagrams that are to leave: the byte.
    pub leaving: VecDeque<u8>,
}
