//! Outer headers, as a socket's addresses tell of them.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use doorbell_core::encap::Outer;
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac, Udp,
    UdpPort,
};

/// The headers of datagrams between two sockets, of one family as sockets have it. What the system
/// decides and the ICRC does not cover is as good as any; they are not fragmented.
pub fn between(from: SocketAddr, to: SocketAddr) -> Option<Outer> {
    let (source, destination) = (UdpPort(from.port()), UdpPort(to.port()));
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    let ethernet =
        |ethertype| Ethernet { destination: Mac([0; 6]), source: Mac([0; 6]), ethertype };
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let ip = Ipv4 {
                tos: 0,
                total_length: 0,
                id: IpId(0),
                dont_fragment: true,
                ttl: 64,
                protocol: IpProtocol::UDP,
                source: *from.ip(),
                destination: *to.ip(),
            };
            Some(Outer::V2Ipv4(ethernet(EtherType::IPV4), ip, udp))
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let ip = Ipv6 {
                traffic_class: 0,
                flow_label: FlowLabel::new(0),
                payload_length: 0,
                next_header: IpProtocol::UDP,
                hop_limit: 64,
                source: Gid(from.ip().octets()),
                destination: Gid(to.ip().octets()),
            };
            Some(Outer::V2Ipv6(ethernet(EtherType::IPV6), ip, udp))
        }
        _ => None,
    }
}

/// How many bytes headers take from such an address.
#[inline]
pub fn len(own: SocketAddr) -> usize {
    match own {
        SocketAddr::V4(_) => Ethernet::LEN + Ipv4::LEN + Udp::LEN,
        SocketAddr::V6(_) => Ethernet::LEN + Ipv6::LEN + Udp::LEN,
    }
}

/// The socket that headers lead to from `own`, if they lead to one.
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

/// An address as the system names it: with an interface where it means nothing without one.
pub fn scoped(ip: Ipv6Addr, port: u16, scope: u32) -> SocketAddrV6 {
    SocketAddrV6::new(ip, port, 0, if ip.is_unicast_link_local() { scope } else { 0 })
}
