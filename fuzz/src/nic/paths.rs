//! The addresses of the queue pairs and their peers, and the paths between them.

use std::net::{IpAddr, Ipv6Addr};

use doorbell_core::encap::{Outer, Path, PathId, Version};
use doorbell_core::nic::Transport;
use doorbell_core::wire::{Ethernet, Gid, Mac, PathMtu, Qpn};

/// How many queue pairs there are, each with a path and a peer of its own.
pub const PAIRS: usize = 9;

/// How many hosts the peers are on. The last peers share those of the first.
const HOSTS: usize = 6;

/// The queue pair that is in another protection domain than the others.
pub const FOREIGN: usize = 5;

pub const MTU: PathMtu = PathMtu::Mtu256;

/// The transport service of each queue pair.
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

/// Returns whether two paths lead to the same host, so that a packet doesn't tell by which it came.
pub const fn same_host(one: usize, other: usize) -> bool {
    one % HOSTS == other % HOSTS
}

/// The path to a peer. The encapsulations take turns.
pub fn path_to(index: usize) -> Path {
    way(index, outer(index, index as u8, false))
}

/// The path by which a peer's packets come.
pub fn path_from(index: usize) -> Path {
    way(index, outer(index, index as u8, true))
}

/// The path to a peer that has got another Ethernet address.
pub fn path_to_moved(index: usize) -> Path {
    way(index, outer(index, 0xAA, false))
}

/// The path of an address for datagrams, with a number of its own.
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
    let (from, to) = turned(mac);
    let macs = (station(from), station(to));
    let (from, to) = turned(host);
    let v2 = |source: IpAddr, destination: IpAddr| {
        let (source, destination) = ((source, 0xC000).into(), (destination, 4791).into());
        Outer::v2(macs, source, destination).expect("one family")
    };
    let link_local = |host| Ipv6Addr::from(Gid::from_mac(station(host))).into();
    match [Version::V2Ipv4, Version::V2Ipv6, Version::V1][index % 3] {
        Version::V1 => {
            // Of a host that has got another address, the identifier stays.
            let Outer::V1(ethernet, grh) = Outer::v1((station(from), station(to))) else {
                panic!()
            };
            Outer::V1(Ethernet { destination: macs.1, source: macs.0, ..ethernet }, grh)
        }
        Version::V2Ipv6 => v2(link_local(from), link_local(to)),
        Version::V2Ipv4 => v2([10, 0, 0, from].into(), [10, 0, 0, to].into()),
    }
}
