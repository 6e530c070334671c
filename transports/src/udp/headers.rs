//! Outer headers of datagrams, made from the addresses of sockets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use doorbell_core::encap::{Host, Outer};
use doorbell_core::wire::{Ethernet, Ipv4, Ipv6, Mac, Udp, UdpPort};

use crate::host::not_a_hosts;

/// Returns the headers of datagrams between two sockets, or `None` if the addresses are of
/// different families. Fields that the system fills in, and the ICRC does not cover, have any
/// values.
pub fn between(from: SocketAddr, to: SocketAddr) -> Option<Outer> {
    Outer::v2((Mac([0; 6]), Mac([0; 6])), from, to)
}

/// Returns the host, and the port there, that a socket's address stands for.
pub fn host(address: SocketAddr) -> Host {
    let gid = match address.ip() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => ip.into(),
    };
    Host { gid, port: UdpPort(address.port()) }
}

/// Returns how many bytes the outer headers take of packets from such an address.
#[inline]
pub fn len(own: SocketAddr) -> usize {
    match own {
        SocketAddr::V4(_) => Ethernet::LEN + Ipv4::LEN + Udp::LEN,
        SocketAddr::V6(_) => Ethernet::LEN + Ipv6::LEN + Udp::LEN,
    }
}

/// Returns the address of the socket that headers lead to from `own`, if they lead to a socket.
#[inline]
pub fn destination(outer: &Outer, own: SocketAddr) -> Option<SocketAddr> {
    match (outer, own) {
        (Outer::V2Ipv4(_, ip, udp), SocketAddr::V4(_)) => {
            Some(SocketAddr::new(ip.destination.into(), udp.destination.0))
        }
        (Outer::V2Ipv6(_, ip, udp), SocketAddr::V6(own)) => {
            let destination = Ipv6Addr::from(ip.destination.0);
            Some(scoped(destination, udp.destination.0, own.scope_id()).into())
        }
        _ => None,
    }
}

/// Returns why an address can't be a peer's, or `None` if it can.
pub fn not_a_peers(address: SocketAddr) -> Option<&'static str> {
    match address.port() {
        0 => Some("port 0 is no socket's; name the port that the peer's device was opened at"),
        _ => not_a_hosts(address.ip()),
    }
}

/// Makes an address with the number of an interface, if the address is link-local and means nothing
/// without one.
pub fn scoped(ip: Ipv6Addr, port: u16, scope: u32) -> SocketAddrV6 {
    SocketAddrV6::new(ip, port, 0, if ip.is_unicast_link_local() { scope } else { 0 })
}
