//! Raw Ethernet by RoCE v1. Each packet is a frame, sent as soon as it is encoded, and received by
//! a ring that the kernel fills and this process polls.
//!
//! The device uses the interface's own address, so it works on interfaces that pass frames for no
//! other address (macvlan). A filter in the kernel passes a process the frames of its own queue
//! pairs and of queue pair 1. A busy device that is alone on the interface has no filter, until a
//! frame of another process comes; while it does not poll, such frames may fill its ring.
//!
//! The kernel asks the packet sockets of an interface one after the other whether a frame is
//! theirs, the one that was opened last first, and each takes time. So a busy device may open its
//! socket anew, at any time, in a thread that lives for some milliseconds. A program with a filter
//! of system calls should let `socket`, `setsockopt` and `clone` fail rather than kill it.

mod filter;

use std::io;

use doorbell_core::encap::Outer;
use doorbell_core::nic::{Numbering, Way};
use doorbell_core::wire::{EtherType, Mac};

use crate::address::{Address, ReachError};
use crate::clock::Clock;
use crate::open::DeviceError;
use crate::raw::{BoundInterface, Intake, Peers, Raw, Recipe};
use crate::sys::packet::PacketSocket;

/// The name of the device, which addresses and errors begin with.
const NAME: &str = "packet";

/// An interface spoken to by RoCE v1.
pub type Packet = Raw<Stations>;

/// Peers that are known by the Ethernet addresses of their interfaces.
#[derive(Debug)]
pub struct Stations {
    own: Mac,
}

impl Packet {
    /// Opens an interface for the queue pairs that `numbering` calls this process's.
    ///
    /// # Errors
    /// When the interface is missing, not up, no Ethernet, or its MTU is too small; when raw
    /// sockets are not allowed.
    pub fn open(interface: &str, numbering: Numbering) -> Result<Self, DeviceError> {
        let (bound, found) = BoundInterface::find(NAME, interface)?;
        let opened = || -> io::Result<_> {
            let own = filter::own(numbering);
            let intake = Intake::open(Recipe {
                index: found.index,
                protocol: EtherType::ROCE,
                filter: vec![own.to_vec()],
                own: Some(own),
                runs: false,
                addresses: vec![],
            })?;
            // Another socket would put more of the kernel's cache lines on each frame's way: 10 ns.
            let singles = intake.socket().clone();
            let (own, address) = (found.mac, Address::Packet(found.mac));
            Raw::new(NAME, address, Stations { own }, bound, intake, singles, 1)
        };
        opened().map_err(|source| DeviceError::raw(NAME, interface, source))
    }
}

impl Peers for Stations {
    const RUNS: bool = false;

    fn reach(
        &mut self,
        peer: &Address,
        _: &Clock,
        _: &PacketSocket,
    ) -> Result<Option<Way>, ReachError> {
        let &Address::Packet(destination) = peer else {
            let (address, takes) = (peer.clone(), "packet:MAC");
            return Err(ReachError::Kind { address, device: NAME, takes });
        };
        // The loopback interface, whose own address is zero, receives what it sends.
        let nobody = Mac([0; 6]);
        let why = match destination {
            Mac([first, ..]) if first & 1 != 0 => {
                Some("it is a multicast address, and a peer is one interface")
            }
            _ if self.own == nobody => None,
            _ if destination == nobody => Some("it is zero, which is no interface's"),
            _ if destination == self.own => {
                Some("it is the device's own, and no interface hears itself")
            }
            _ => None,
        };
        match why {
            Some(why) => Err(ReachError::NoPeers { address: peer.clone(), why }),
            None => Ok(Some(Way::Network(Outer::v1((self.own, destination))))),
        }
    }
}
