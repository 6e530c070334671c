//! A queue pair, and what the checks must know of it.

use doorbell_core::encap::Path;
use doorbell_core::nic::{Domain, QueuePairEnds, Rights, Transport};
use doorbell_core::wire::{Qpn, Service};

use super::packets::Within;
use super::paths::{FOREIGN, path_from, transport};

/// The largest window with which a queue pair sends.
pub const WINDOW: usize = 8;

/// The most packets from beyond gaps that the NIC may keep.
pub const MOST_HELD: usize = 12;

/// A queue pair as the checks know it.
pub struct Pair {
    /// The program's ends of the queues; `None` once the program has dropped them.
    pub ends: Option<QueuePairEnds>,
    /// The number of the queue pair; `None` while no queue pair is in this place.
    pub qpn: Option<Qpn>,
    pub service: Service,
    pub domain: Domain,
    pub rights: Rights,
    /// How many reads and atomic operations the peer may have under way at a time.
    pub reads: u8,
    /// Whether the peer may send metadata.
    pub metadata: bool,
    /// Whether the receives come from the shared queue.
    pub shares: bool,
    /// Whether the peer's next request was refused. Until that request comes again, the NIC need
    /// not send another refusal.
    pub refused: bool,
    /// The message that is being received.
    pub within: Within,
    /// The bytes of that message that have come.
    pub message: Vec<u8>,
    /// The path by which packets of the peer come.
    pub back: Path,
}

impl Pair {
    pub fn new(index: usize, domains: [Domain; 2]) -> Self {
        Self {
            ends: None,
            qpn: None,
            service: match transport(index) {
                Transport::Reliable => Service::Rc,
                Transport::Unreliable => Service::Uc,
                Transport::Datagram => Service::Ud,
            },
            domain: domains[usize::from(index == FOREIGN)],
            rights: Rights::NONE,
            reads: 0,
            metadata: false,
            shares: false,
            refused: false,
            within: Within::Nothing,
            message: Vec::new(),
            back: path_from(index),
        }
    }

    /// The number that packets for the queue pair bear. Without a queue pair, a number that no
    /// queue pair has.
    pub fn number(&self) -> Qpn {
        self.qpn.unwrap_or(Qpn::new(0))
    }
}
