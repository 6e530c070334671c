//! Packets in the names of other hosts, as a host off the path of a connection can send them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use doorbell_core::encap::{Outer, Path, PathId, alone};
use doorbell_core::wire::{Ethernet, Headers, IpId, Mac};

use crate::sys;

/// Sends IP packets with any source address, from the network namespace in which the forger was
/// made. Only root of the namespace may do so, as in a [`lab`](crate::lab).
///
/// The kernel replaces the identification of an IPv4 packet if it is 0.
#[derive(Debug)]
pub struct Forger {
    v4: OwnedFd,
    v6: OwnedFd,
}

/// The reason for which an ICMP message returns a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounce {
    /// The port of the datagram's destination is closed.
    PortUnreachable,
    /// The host of the datagram's destination can't be reached.
    HostUnreachable,
    /// The datagram is longer than the MTU of a link, which is given.
    TooLong(u32),
}

impl Forger {
    /// Opens raw sockets in this thread's namespace.
    ///
    /// # Errors
    /// When raw sockets are not allowed.
    pub fn new() -> io::Result<Self> {
        Ok(Self { v4: sys::raw_socket(false)?, v6: sys::raw_socket(true)? })
    }

    /// Sends a valid RoCE v2 packet, whose ICRC is right.
    ///
    /// # Panics
    /// When the addresses are of two families, or the system does not send the packet.
    pub fn packet(
        &self,
        (from, to): (SocketAddr, SocketAddr),
        id: u16,
        headers: Headers,
        payload: &[u8],
    ) {
        let outer = Outer::v2((Mac([0; 6]), Mac([0; 6])), from, to).expect("one family");
        let mut frame = vec![0; payload.len() + 256];
        let path = Path::new(PathId(0), outer);
        let len = alone(&path, &mut frame, IpId(id), headers, payload).expect("there is room");
        self.send(&frame[Ethernet::LEN..len], to.ip());
    }

    /// Sends a UDP datagram with any payload.
    ///
    /// # Panics
    /// As [`packet`](Self::packet).
    pub fn datagram(&self, (from, to): (SocketAddr, SocketAddr), payload: &[u8]) {
        self.send(&[&datagram_headers((from, to), payload.len())[..], payload].concat(), to.ip());
    }

    /// Sends an ICMP message about a datagram from `from` to `to`, as a router on the datagram's
    /// way would: to `from`, in the name of `router`.
    ///
    /// # Panics
    /// As [`packet`](Self::packet).
    pub fn bounce(&self, router: IpAddr, (from, to): (SocketAddr, SocketAddr), bounce: Bounce) {
        let v6 = from.is_ipv6();
        let (kind, code, mtu) = match (bounce, v6) {
            (Bounce::PortUnreachable, false) => (3, 3, 0),
            (Bounce::HostUnreachable, false) => (3, 1, 0),
            (Bounce::TooLong(mtu), false) => (3, 4, mtu),
            (Bounce::PortUnreachable, true) => (1, 4, 0),
            (Bounce::HostUnreachable, true) => (1, 3, 0),
            (Bounce::TooLong(mtu), true) => (2, 0, mtu),
        };
        let quoted = [&datagram_headers((from, to), 100)[..], &[0; 32]].concat();
        let mut message = [&[kind, code, 0, 0][..], &mtu.to_be_bytes(), &quoted].concat();
        let header = ip_header((router, from.ip()), ICMP[usize::from(v6)], message.len());
        let sum = match v6 {
            false => checksum(&message),
            true => {
                let (addresses, len) = (&header[8..40], message.len() as u32);
                checksum(&[addresses, &len.to_be_bytes(), &[0, 0, 0, ICMP[1]], &message].concat())
            }
        };
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        self.send(&[header, message].concat(), from.ip());
    }

    fn send(&self, packet: &[u8], to: IpAddr) {
        let socket = if to.is_ipv6() { &self.v6 } else { &self.v4 };
        sys::send_raw(socket.as_fd(), packet, to).expect("the system sends it");
    }
}

const UDP: u8 = 17;
/// The protocol numbers of ICMP and ICMPv6.
const ICMP: [u8; 2] = [1, 58];

/// The headers of a UDP datagram, without a checksum.
fn datagram_headers((from, to): (SocketAddr, SocketAddr), payload: usize) -> Vec<u8> {
    let len = 8 + payload;
    let mut headers = ip_header((from.ip(), to.ip()), UDP, len);
    for field in [from.port(), to.port(), len as u16, 0] {
        headers.extend(field.to_be_bytes());
    }
    headers
}

/// Makes an IP header. The checksum of an IPv4 header is left to the kernel.
fn ip_header((from, to): (IpAddr, IpAddr), protocol: u8, payload: usize) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = (20 + payload as u16).to_be_bytes();
            let fixed = [0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0];
            [&fixed[..], &from.octets(), &to.octets()].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let [high, low] = (payload as u16).to_be_bytes();
            let fixed = [0x60, 0, 0, 0, high, low, protocol, 64];
            [&fixed[..], &from.octets(), &to.octets()].concat()
        }
        _ => panic!("{from} and {to} are of two families"),
    }
}

/// Computes the Internet checksum of some bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));
    let sum = words.fold(0u32, |sum, word| sum + u32::from(word));
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}
