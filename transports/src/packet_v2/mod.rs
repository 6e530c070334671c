//! Raw Ethernet by RoCE v2, in runs that the interface cuts into packets.
//!
//! The device has an Ethernet and an IP address of its own. So the host's IP stack ignores the
//! device's frames, and never answers them with an error; and several processes share an interface
//! without seeing each other's frames. The device answers neighbours that ask for its address, and
//! asks for theirs.
//!
//! Unless an address is given, the device takes the IPv6 address that belongs to its Ethernet
//! address. IPv6 has no identification, which the ICRC covers, and which offloads on the way may
//! change.
//!
//! As a device of [`packet`](crate::packet) does, a busy one may open its socket anew, to be asked
//! first whether a frame is its own.
//!
//! Two devices on one interface don't hear each other, since an interface does not receive what it
//! sends. Processes on one machine use `shm`.

mod discovery;
mod filter;
mod neighbours;
mod network;

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use doorbell_core::encap::{ICRC_LEN, Outer, Path, PathId, Run};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    Bth, EtherType, Extensions, Gid, Headers, IpId, Mac, Malformed, Opcode, Packet, Psn, Qpn,
};
use rustix::io::Errno;

use crate::address::Address;
use crate::device::Device;
use crate::open::DeviceError;
use crate::raw::{BoundInterface, Intake, Raw, Recipe};
use crate::sys::packet::{PacketSocket, ReceiveRing};
use crate::sys::{self, epoll_timer, ethtool, interface, virtio};

use discovery::Station;
use neighbours::{ARP_SLOT, ARP_SLOTS, Arp, NAME};
pub use neighbours::{MOST, Neighbours};
pub use network::{Network, NetworkError};

/// An interface spoken to by RoCE v2.
pub type PacketV2 = Raw<Neighbours>;

/// The addresses of a device, as far as a program chooses them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Settings {
    /// The device's own Ethernet address: a random one, unless given.
    pub mac: Option<Mac>,
    /// The device's IP address, and the network that it reaches: the link-local address that
    /// belongs to its Ethernet address, unless given.
    pub network: Option<Network>,
}

/// How often a device asks whether another station has the address that it was given.
const PROBES: usize = 2;
/// How long an answer to each such question is waited for.
const PROBE: Duration = Duration::from_millis(100);

impl PacketV2 {
    /// Opens a device on an interface. If an IP address is given, this takes a fifth of a second,
    /// in which another station that has the address may say so.
    ///
    /// # Errors
    /// When the interface is missing, not up, no Ethernet, or its MTU is too small; when it accepts
    /// no frames for another address than its own; when raw sockets are not allowed, or another
    /// station has the address.
    pub fn open(interface: &str, settings: Settings) -> Result<Self, DeviceError> {
        let (bound, found) = BoundInterface::find(NAME, interface)?;
        let driver = ethtool::driver(interface).unwrap_or_default();
        if matches!(&driver[..], "macvlan" | "ipvlan") {
            return Err(DeviceError::OwnOnly { device: NAME, interface: interface.into(), driver });
        }
        let opened = || -> io::Result<_> {
            let mac = settings.mac.map_or_else(random_mac, Ok)?;
            let derived = Network::link_local(Ipv6Addr::from(Gid::from_mac(mac)));
            let network = settings.network.unwrap_or(derived);
            let own = Station { mac, ip: network.own() };
            // A pair of virtual interfaces passes frames for any address.
            let addresses = if driver == "veth" { vec![] } else { heard(own) };
            let (intake, arp) = listen(found.index, own, addresses)?;
            let singles = PacketSocket::open(false)?;
            singles.bind(found.index, EtherType(0))?;
            let neighbours = Neighbours::new(mac, network, arp);
            let run = longest_run(intake.socket(), neighbours.to_self())?;
            Raw::new(NAME, Address::PacketV2(own.ip), neighbours, bound, intake, singles, run)
        };
        let mut device = opened().map_err(|source| DeviceError::raw(NAME, interface, source))?;
        if let Some(network) = settings.network {
            device.claim(interface, network.own())?;
        }
        Ok(device)
    }

    /// Makes sure that no other station has the address, and announces that this device has it.
    fn claim(&mut self, interface: &str, ip: IpAddr) -> Result<(), DeviceError> {
        let taken = |by: String| DeviceError::Taken {
            device: NAME,
            what: format!("{ip} on `{interface}`"),
            by: None,
            source: io::Error::new(io::ErrorKind::AddrInUse, by),
            advice: "give the device another address, or none",
        };
        // The host itself does not hear what this device asks, and would not answer.
        let system = |source| DeviceError::raw(NAME, interface, source);
        if let Some(holder) = interface::holder(ip).map_err(system)? {
            return Err(taken(format!("it is this host's own, on `{holder}`")));
        }
        for _ in 0..PROBES {
            self.peers.probe(&self.singles);
            let until = self.now() + PROBE;
            while self.now() < until && self.peers.rival().is_none() {
                let waited =
                    self.arm(Some(until)).and_then(|()| epoll_timer::wait(self.readiness()));
                self.disarm();
                waited.map_err(system)?;
                while self.receive(&mut DropAll) > 0 {}
            }
        }
        if let Some(mac) = self.peers.rival() {
            return Err(taken(format!("{mac} has it")));
        }
        self.peers.announce(&self.singles);
        Ok(())
    }
}

/// Draws a random Ethernet address, of those that are not assigned to manufacturers.
fn random_mac() -> io::Result<Mac> {
    let mut mac: [u8; 6] = sys::random()?;
    mac[0] = mac[0] & !1 | 2;
    Ok(Mac(mac))
}

/// Opens the sockets by which frames come and, over IPv4, neighbours are heard.
fn listen(index: u32, own: Station, addresses: Vec<Mac>) -> io::Result<(Intake, Option<Arp>)> {
    let filter = filter::own(own);
    let recipe = |protocol| Recipe { index, protocol, filter, own: None, runs: true, addresses };
    let intake = |protocol| Intake::open(recipe(protocol));
    match own.ip {
        IpAddr::V6(_) => Ok((intake(EtherType::IPV6)?, None)),
        IpAddr::V4(_) => {
            let socket = PacketSocket::open(false)?;
            let ring = ReceiveRing::new(&socket, ARP_SLOT, ARP_SLOTS)?;
            socket.bind(index, discovery::ARP)?;
            Ok((intake(EtherType::IPV4)?, Some(Arp { socket, ring })))
        }
    }
}

/// Returns the addresses for which the interface is to accept frames: the device's own, and the
/// group to which questions for its address are sent.
fn heard(own: Station) -> Vec<Mac> {
    let asked = match own.ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(discovery::group_mac(discovery::solicited_node(ip))),
    };
    [own.mac].into_iter().chain(asked).collect()
}

/// Finds out how many packets the kernel takes in one frame, by sending such frames from the device
/// to itself, which no switch delivers.
fn longest_run(socket: &PacketSocket, to_self: Outer) -> io::Result<u32> {
    let path = Path::new(PathId(0), to_self);
    for most in [128, 64] {
        match socket.send(&run_of(most, &path)) {
            Ok(_) => return Ok(most),
            Err(why) if Errno::from_io_error(&why) == Some(Errno::INVAL) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(1)
}

/// Makes a frame of many packets without payload, with its virtio header in front.
fn run_of(packets: u32, path: &Path) -> Vec<u8> {
    let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(0));
    let headers = Headers { bth, extensions: Extensions::None };
    let mut frame = vec![0; Outer::MAX_LEN + packets as usize * (headers.len() + ICRC_LEN)];
    let mut run = Run::begin(path, &mut frame, IpId(0), packets);
    while run.push(path, &mut frame, headers, &[][..]).is_ok() {}
    let sealed = run.seal(&mut frame);
    let header = sealed.segmentation.map(virtio::header).unwrap_or_default();
    [&header[..], &frame[..sealed.len]].concat()
}

/// An inbox that drops packets, before a device has a NIC.
struct DropAll;

impl Inbox for DropAll {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}
