//! The addresses of stations, which are made of a station's number, and the outer headers from one
//! station to another.

use std::net::{IpAddr, Ipv6Addr};

use doorbell_core::encap::{Outer, Path, PathId, Version};
use doorbell_core::wire::{Gid, Mac, UdpPort};

/// A station's hardware address, of which its other addresses are made.
///
/// The addresses of the first 256 stations differ from each other in more bits than a fault flips.
/// Otherwise the address in a corrupted frame might be another station's, and switches would learn
/// a wrong port for that station.
pub(crate) fn mac(number: usize) -> Mac {
    let [.., a, b] = number.to_be_bytes();
    Mac([2, b, b, b, a, b])
}

/// The number of the station with a hardware address.
pub(crate) fn number_of(Mac([.., a, b]): Mac) -> usize {
    usize::from(u16::from_be_bytes([a, b]))
}

fn ipv4(number: usize) -> IpAddr {
    let [.., a, b] = (number + 1).to_be_bytes();
    [10, 0, a, b].into()
}

/// The outer headers from one station to another.
pub(crate) fn outer(version: Version, from: usize, to: usize) -> Outer {
    let macs = (mac(from), mac(to));
    let v2 = |ip: fn(usize) -> IpAddr| {
        let (from, to) = ((ip(from), 0xC000).into(), (ip(to), UdpPort::ROCE_V2.0).into());
        Outer::v2(macs, from, to).expect("addresses of one family")
    };
    match version {
        Version::V1 => Outer::v1(macs),
        Version::V2Ipv4 => v2(ipv4),
        Version::V2Ipv6 => v2(|number| Ipv6Addr::from(Gid::from_mac(mac(number))).into()),
    }
}

/// The path from one station to another through the network.
pub(crate) fn path_between(version: Version, from: usize, to: usize) -> Path {
    Path::new(PathId(to as u32), outer(version, from, to))
}
