//! Where stations are, as frames have it: addresses made of a station's number, and the outer headers
//! from one to another.

use std::net::Ipv4Addr;

use doorbell_core::encap::{Outer, Path, PathId, Version};
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, Grh, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac, Udp,
    UdpPort,
};

/// A station's hardware address, and from it all others.
///
/// Those of the first 256 differ from each other in more bits than a fault flips. Otherwise one of
/// a corrupted frame might be another's, and teach switches a way to that on which it is not.
pub(crate) fn mac(number: usize) -> Mac {
    let [.., a, b] = number.to_be_bytes();
    Mac([2, b, b, b, a, b])
}

/// The number of the station with a hardware address.
pub(crate) fn number_of(Mac([.., a, b]): Mac) -> usize {
    usize::from(u16::from_be_bytes([a, b]))
}

fn ipv4(number: usize) -> Ipv4Addr {
    let [.., a, b] = (number + 1).to_be_bytes();
    Ipv4Addr::new(10, 0, a, b)
}

/// The outer headers from one station to another. They allow marks of congestion.
pub(crate) fn outer(version: Version, from: usize, to: usize) -> Outer {
    let ethernet = |ethertype| Ethernet { destination: mac(to), source: mac(from), ethertype };
    let ipv6 = |next_header| Ipv6 {
        traffic_class: 2,
        flow_label: FlowLabel::new(0),
        payload_length: 0,
        next_header,
        hop_limit: 64,
        source: Gid::from_mac(mac(from)),
        destination: Gid::from_mac(mac(to)),
    };
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    match version {
        Version::V1 => Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
        Version::V2Ipv4 => {
            let ip = Ipv4 {
                tos: 2,
                total_length: 0,
                id: IpId(0),
                dont_fragment: true,
                ttl: 64,
                protocol: IpProtocol::UDP,
                source: ipv4(from),
                destination: ipv4(to),
            };
            Outer::V2Ipv4(ethernet(EtherType::IPV4), ip, udp)
        }
        Version::V2Ipv6 => Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
    }
}

/// The way from one station to another, by the network.
pub(crate) fn way(version: Version, from: usize, to: usize) -> Path {
    Path::new(PathId(to as u32), outer(version, from, to))
}
