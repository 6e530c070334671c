//! Raw Ethernet by RoCE v2, in runs that the interface cuts into packets.
//!
//! The device has an Ethernet and an IP address of its own. So the host's IP stack ignores its
//! frames, and never answers them with an error; and several processes share an interface without
//! seeing each other's. It answers its neighbours who ask for its address, and asks for theirs.
//!
//! Unless told otherwise it takes the IPv6 address that belongs to its Ethernet address. IPv6 has
//! no identification, which offloads on the way may change, and the ICRC covers.
//!
//! As a device of [`packet`](crate::packet), it may open its socket anew to be asked first.
//!
//! Two devices on one interface don't hear each other, since no interface does: in one machine,
//! processes meet by `shm`.

mod filter;
mod neighbours;
mod network;
mod question;

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use doorbell_core::encap::{ICRC_LEN, Outer, Path, PathId, Run};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    Bth, EtherType, Extensions, Gid, Headers, IpId, Mac, Malformed, Opcode, Packet, Psn, Qpn,
};

use crate::address::Address;
use crate::device::Device;
use crate::open::OpenError;
use crate::raw::{Intake, Link, Raw, Recipe};
use crate::sys::packet::{PacketSocket, ReceiveRing};
use crate::sys::{self, ethtool, interface, virtio};

use neighbours::Arp;
pub use neighbours::{MOST, Neighbours};
pub use network::{Network, NetworkError};
use question::Own;

/// What it is called.
const NAME: &str = "packet-v2";

/// An interface spoken to by RoCE v2.
pub type PacketV2 = Raw<Neighbours>;

/// What can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Settings {
    /// The device's own Ethernet address: a random one, unless given.
    pub mac: Option<Mac>,
    /// Its IP address, and whom it can reach there: the link-local one that belongs to its Ethernet
    /// address, unless given.
    pub network: Option<Network>,
}

/// The ring in which ARP comes: a frame of it fits a slot, with what the kernel says of it.
const ARP_SLOT: usize = 256;
const ARP_SLOTS: usize = 64;

/// How often it is asked whether an address that was given is somebody's already, and how long each
/// answer is waited for.
const PROBES: usize = 2;
const PROBE: Duration = Duration::from_millis(100);

impl PacketV2 {
    /// Opens an interface. Where an address is given, that takes a fifth of a second, for somebody
    /// else who has it to say so.
    ///
    /// # Errors
    /// When the interface is not there, not up, no Ethernet, or its MTU is too small; when it takes
    /// in no frames for another address than its own; when raw sockets are not allowed, or somebody
    /// has the address.
    pub fn open(interface: &str, settings: Settings) -> Result<Self, OpenError> {
        let (link, found) = Link::find(NAME, interface)?;
        let driver = ethtool::driver(interface).unwrap_or_default();
        if matches!(&driver[..], "macvlan" | "ipvlan") {
            return Err(OpenError::OwnOnly { device: NAME, interface: interface.into(), driver });
        }
        let opened = || -> io::Result<_> {
            let mac = settings.mac.map_or_else(random_mac, Ok)?;
            let derived = Network::link_local(Ipv6Addr::from(Gid::from_mac(mac)));
            let network = settings.network.unwrap_or(derived);
            let own = Own { mac, ip: network.own() };
            // A cable passes everything anyway.
            let addresses = if driver == "veth" { vec![] } else { heard(own) };
            let (intake, arp) = listen(found.index, own, addresses)?;
            let singles = PacketSocket::open(false)?;
            singles.bind(found.index, EtherType(0))?;
            let neighbours = Neighbours::new(mac, network, arp);
            let run = longest_run(intake.socket(), neighbours.to_self())?;
            Raw::new(NAME, Address::PacketV2(own.ip), neighbours, link, intake, singles, run)
        };
        let mut device = opened().map_err(|source| OpenError::raw(NAME, interface, source))?;
        if let Some(network) = settings.network {
            device.claim(interface, network.own())?;
        }
        Ok(device)
    }

    /// Makes sure that the address is nobody else's, and says that it is taken.
    fn claim(&mut self, interface: &str, ip: IpAddr) -> Result<(), OpenError> {
        let taken = |by: String| OpenError::Taken {
            device: NAME,
            what: format!("{ip} on `{interface}`"),
            by: None,
            source: io::Error::new(io::ErrorKind::AddrInUse, by),
            advice: "give the device another address, or none",
        };
        // The host does not hear what is asked here, and would not answer.
        let system = |source| OpenError::raw(NAME, interface, source);
        if let Some(holder) = interface::holder(ip).map_err(system)? {
            return Err(taken(format!("it is this host's own, on `{holder}`")));
        }
        for _ in 0..PROBES {
            self.peers.probe(&self.singles);
            let until = self.now() + PROBE;
            while self.now() < until && self.peers.double().is_none() {
                let waited = self.arm(Some(until)).and_then(|()| sys::wait(self.readiness()));
                self.disarm();
                waited.map_err(system)?;
                while self.receive(&mut Nobody) > 0 {}
            }
        }
        if let Some(mac) = self.peers.double() {
            return Err(taken(format!("{mac} has it")));
        }
        self.peers.announce(&self.singles);
        Ok(())
    }
}

/// A random address, of those that nobody assigns.
fn random_mac() -> io::Result<Mac> {
    let mut mac: [u8; 6] = sys::random()?;
    mac[0] = mac[0] & !1 | 2;
    Ok(Mac(mac))
}

/// Where frames come in, and where over IPv4 neighbours are heard.
fn listen(index: u32, own: Own, addresses: Vec<Mac>) -> io::Result<(Intake, Option<Arp>)> {
    let filter = filter::own(own);
    let recipe = |protocol| Recipe { index, protocol, filter, own: None, runs: true, addresses };
    let intake = |protocol| Intake::open(recipe(protocol));
    match own.ip {
        IpAddr::V6(_) => Ok((intake(EtherType::IPV6)?, None)),
        IpAddr::V4(_) => {
            let socket = PacketSocket::open(false)?;
            let ring = ReceiveRing::new(&socket, ARP_SLOT, ARP_SLOTS)?;
            socket.bind(index, question::ARP)?;
            Ok((intake(EtherType::IPV4)?, Some(Arp { socket, ring })))
        }
    }
}

/// What the interface is to take in frames for: the device, and where its address is asked for.
fn heard(own: Own) -> Vec<Mac> {
    let asked = match own.ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(question::group_mac(question::solicited_node(ip))),
    };
    [own.mac].into_iter().chain(asked).collect()
}

/// How many packets the kernel takes in one frame: found out by sending them, to ourselves, to whom
/// no switch brings them.
fn longest_run(socket: &PacketSocket, to_self: Outer) -> io::Result<u32> {
    let path = Path::new(PathId(0), to_self);
    for most in [128, 64] {
        match socket.send(&run_of(most, &path)) {
            Ok(_) => return Ok(most),
            Err(why) if why.raw_os_error() == Some(libc::EINVAL) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(1)
}

/// A frame of many packets with nothing in them, and the header in front of it.
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

/// Takes packets that come before there is anybody for them.
struct Nobody;

impl Inbox for Nobody {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}
