//! Devices with something to say, and a wire that can be tapped.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Numbering};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Mac, Malformed, Opcode, Packet, Psn, Qpn};
use doorbell_kit::until;
use doorbell_transports::packet::Packet as V1;
use doorbell_transports::packet_v2::{PacketV2, Settings};
use doorbell_transports::{AnyDevice, Device, DeviceError};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind, recv,
    send, socket,
};

/// Both raw devices, by their names.
pub const RAW: [&str; 2] = ["packet", "packet-v2"];

/// Opens a raw device.
pub fn open(name: &str, interface: &str) -> Result<AnyDevice, DeviceError> {
    let spec = format!("{name}:{interface}").parse::<doorbell_transports::Spec>();
    spec.expect("a device").open(Numbering::default())
}

/// A device of RoCE v1 with a tag.
pub fn v1(interface: &str, tag: u32) -> V1 {
    let numbering = Numbering { tag, ..Numbering::default() };
    V1::open(interface, numbering).expect("the interface is there")
}

/// A device of RoCE v2 with the address that comes by itself, or another.
pub fn v2(interface: &str, network: Option<&str>) -> Result<PacketV2, DeviceError> {
    let network = network.map(|network| network.parse().expect("a network"));
    PacketV2::open(interface, Settings { network, ..Settings::default() })
}

/// A queue pair of the process of a tag.
pub fn pair_of(tag: u32) -> Qpn {
    let Numbering { tag_bits, .. } = Numbering::default();
    Qpn::new(tag << (24 - tag_bits) | 0x55)
}

/// The queue pair that everything here is for, unless told otherwise.
pub fn pair() -> Qpn {
    pair_of(Numbering::default().tag)
}

/// Sends packets of some length that are numbered from 0, in one turn.
pub fn send_to(device: &mut impl Device, path: &Path, to: Qpn, count: u32, len: usize) {
    (0..count).for_each(|number| push(device, path, (to, number), len));
    device.flush();
}

/// Has a device take a packet with a number, for a queue pair.
pub fn push(device: &mut impl Device, path: &Path, (to, number): (Qpn, u32), len: usize) {
    let bth = Bth::new(Opcode::RcSendOnly, to, Psn::new(number));
    let headers = Headers { bth, extensions: Extensions::None };
    device.push(path, headers, &vec![7; len][..]).expect("raw devices are never full");
}

/// What came.
#[derive(Default, Debug)]
pub struct Seen {
    /// The queue pair that each packet was for, and its number.
    pub packets: Vec<(Qpn, u32)>,
    /// What was wrong with others.
    pub malformed: Vec<Malformed>,
}

impl Inbox for Seen {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        let bth = packet.headers.bth;
        self.packets.push((bth.destination(), bth.psn().get()));
    }

    fn malformed(&mut self, why: Malformed) {
        self.malformed.push(why);
    }

    fn gone(&mut self, _: PathId) {}
}

/// Has a device take packets until it has so many.
pub fn take(device: &mut impl Device, count: usize) -> Seen {
    let mut seen = Seen::default();
    until(&format!("{count} packets"), || {
        device.receive(&mut seen);
        (seen.packets.len() >= count).then_some(())
    });
    seen
}

/// Everything that crosses an interface, and a way to send anything there.
pub struct Tap {
    fd: OwnedFd,
}

impl Tap {
    /// Taps an interface of this namespace.
    pub fn new(interface: &str) -> Self {
        let link = link(interface);
        let flags = SockFlag::SOCK_NONBLOCK;
        let all = SockProtocol::EthAll;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, all).expect("a raw socket");
        bind(fd.as_raw_fd(), &link).expect("the interface can be listened on");
        Self { fd }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        let sent = send(self.fd.as_raw_fd(), frame, MsgFlags::empty());
        assert_eq!(sent, Ok(frame.len()), "the interface takes it");
    }

    /// The next frame that was sent by somebody else, if there is one.
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 1 << 17];
        let len = recv(self.fd.as_raw_fd(), &mut frame, MsgFlags::empty()).ok()?;
        frame.truncate(len);
        Some(frame)
    }
}

/// The kernel's address of an interface.
fn link(interface: &str) -> LinkAddr {
    let mut all = getifaddrs().expect("interfaces can be listed");
    let found = all.find_map(|found| {
        let address = found.address.filter(|_| found.interface_name == interface)?;
        (address.family() == Some(AddressFamily::Packet)).then(|| *address.as_link_addr().unwrap())
    });
    found.expect("the interface is there")
}

/// The inodes of this namespace's packet sockets, in the order in which they were opened, each with
/// the protocol whose frames it is asked about: none, if that is 0.
pub fn sockets() -> Vec<(u64, u16)> {
    let list = fs::read_to_string("/proc/thread-self/net/packet").expect("a list of sockets");
    let fields = list.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let read = |fields: Vec<&str>| {
        let protocol = u16::from_str_radix(fields[3], 16).expect("a protocol");
        (fields[8].parse().expect("a number"), protocol)
    };
    fields.map(read).collect()
}

/// Those that are asked about frames.
pub fn listening() -> Vec<u64> {
    let asked = sockets().into_iter().filter(|&(_, protocol)| protocol != 0);
    asked.map(|(inode, _)| inode).collect()
}

/// The Ethernet address of an interface.
pub fn mac(interface: &str) -> Mac {
    Mac(link(interface).addr().expect("an Ethernet address"))
}
