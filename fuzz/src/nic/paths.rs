//! Who is who: the queue pairs, their peers, and the ways between them.

use doorbell_core::encap::{Outer, Path, PathId, Version};
use doorbell_core::nic::Transport;
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, Grh, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac,
    PathMtu, Qpn, Udp, UdpPort,
};

/// How many queue pairs there are, each with a path and a peer of its own.
pub const PAIRS: usize = 9;

/// How many hosts the peers are on. The last peers share those of the first.
const HOSTS: usize = 6;

/// The queue pair that is of a domain of its own.
pub const FOREIGN: usize = 5;

pub const MTU: PathMtu = PathMtu::Mtu256;

/// What each queue pair promises.
pub const fn transport(index: usize) -> Transport {
    match index {
        7 => Transport::Unreliable,
        8 => Transport::Datagram,
        _ => Transport::Reliable,
    }
}

/// The number of a path's peer.
pub const fn peer(path: usize) -> Qpn {
    Qpn::new(0x77_0000 + path as u32)
}

/// Whether two paths lead to one host, so that no packet says which it came by.
pub const fn same_host(one: usize, other: usize) -> bool {
    one % HOSTS == other % HOSTS
}

/// The way to a peer: the encapsulations take turns.
pub fn path_to(index: usize) -> Path {
    way(index, outer(index, index as u8, false))
}

/// The way back from it.
pub fn path_from(index: usize) -> Path {
    way(index, outer(index, index as u8, true))
}

/// The way to a peer that has got another Ethernet address.
pub fn path_to_moved(index: usize) -> Path {
    way(index, outer(index, 0xAA, false))
}

/// The way to where datagrams go: it has a number of its own.
pub fn address(index: usize) -> Path {
    Path::new(PathId((PAIRS + index) as u32), outer(index, index as u8, false))
}

fn way(index: usize, outer: Outer) -> Path {
    Path::new(PathId(index as u32), outer)
}

fn outer(index: usize, mac: u8, back: bool) -> Outer {
    let host = (index % HOSTS) as u8;
    let station = |last| Mac([2, 0, 0, 0, 0, last]);
    let turned = |other| if back { (other, 0xFF) } else { (0xFF, other) };
    let (source, destination) = turned(mac);
    let (source, destination) = (station(source), station(destination));
    let ethernet = |ethertype| Ethernet { destination, source, ethertype };
    let (from, to) = turned(host);
    let ipv6 = |next_header| Ipv6 {
        traffic_class: 0,
        flow_label: FlowLabel::new(0),
        payload_length: 0,
        next_header,
        hop_limit: 64,
        source: Gid::from_mac(station(from)),
        destination: Gid::from_mac(station(to)),
    };
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    match [Version::V2Ipv4, Version::V2Ipv6, Version::V1][index % 3] {
        Version::V1 => Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
        Version::V2Ipv6 => Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
        Version::V2Ipv4 => {
            let ip = Ipv4 {
                tos: 0,
                total_length: 0,
                id: IpId(0),
                dont_fragment: true,
                ttl: 64,
                protocol: IpProtocol::UDP,
                source: [10, 0, 0, from].into(),
                destination: [10, 0, 0, to].into(),
            };
            Outer::V2Ipv4(ethernet(EtherType::IPV4), ip, udp)
        }
    }
}
