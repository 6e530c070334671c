//! Routes: the ways to peers' connection managers.

use std::hash::{Hash, Hasher};

use crate::encap::{Host, Path, PathId, Version};
use crate::nic::{Management, Way};

/// The way to a peer's manager, by which a [`ConnectionManager`](crate::cm::ConnectionManager)
/// distinguishes its peers.
///
/// Two routes are equal if they lead between the same two hosts by the same encapsulation. Headers
/// are not compared, since received headers differ from one datagram to the next: they contain
/// lengths and identifications, routers count hops, switches mark congestion, and a host may have
/// moved to another port of a switch.
#[derive(Clone, Copy, Debug)]
pub struct Route(Way);

/// The part of a route that is compared.
#[derive(PartialEq, Eq, Hash)]
enum Hosts {
    Link(PathId),
    Network(Version, Host, Host),
}

impl Route {
    /// Makes a route of the way that a datagram is sent by.
    pub const fn new(there: Way) -> Self {
        Self(there)
    }

    /// Returns the route along a path through a network.
    pub fn along(path: &Path) -> Self {
        Self(Way::Network(*path.outer()))
    }

    /// Returns the route back to the sender of a datagram.
    pub fn back(received: &Management) -> Self {
        Self(received.way.back())
    }

    /// Returns the path of a queue pair that is connected to a peer of that manager, which is also
    /// the path of datagrams to the manager itself. `id` is as for [`Way::path`].
    pub fn path(&self, id: PathId) -> Path {
        self.0.path(id)
    }

    /// Returns the way that datagrams are sent by.
    pub const fn way(&self) -> &Way {
        &self.0
    }

    fn hosts(&self) -> Hosts {
        match &self.0 {
            Way::Link(link) => Hosts::Link(*link),
            Way::Network(outer) => {
                let (from, to) = outer.hosts();
                Hosts::Network(outer.version(), from, to)
            }
        }
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.hosts() == other.hosts()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hosts().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;
    use crate::encap::Outer;
    use crate::wire::cm::Mad;
    use crate::wire::{Ethernet, IpId, Ipv4, Mac, Qpn, Udp, UdpPort};

    fn outer(from: u8, to: u8, id: u16) -> Outer {
        let mac = |n| Mac([2, 0, 0, 0, 0, n]);
        let at = |host, port: UdpPort| ([10, 0, 0, host], port.0).into();
        let (from_at, to_at) = (at(from, UdpPort(0xC000)), at(to, UdpPort::ROCE_V2));
        let Some(Outer::V2Ipv4(ethernet, ip, udp)) =
            Outer::v2((mac(from), mac(to)), from_at, to_at)
        else {
            panic!("IPv4 both")
        };
        Outer::V2Ipv4(ethernet, Ipv4 { id: IpId(id), ..ip }, udp)
    }

    fn received(outer: Outer) -> Management {
        Management { way: Way::Network(outer), source: Qpn::GSI, bytes: [0; Mad::LEN] }
    }

    #[test]
    fn whatever_comes_from_a_host_leads_back_to_it_and_to_no_other() {
        let there = Route::along(&Path::new(PathId(1), outer(1, 2, 0)));
        let Outer::V2Ipv4(ethernet, ip, udp) = outer(2, 1, 77).around(280) else { panic!() };
        let (moved, worn) =
            (Ethernet { source: Mac([9; 6]), ..ethernet }, Ipv4 { ttl: 3, tos: 3, ..ip });
        let hash = |route| BuildHasherDefault::<DefaultHasher>::default().hash_one(route);
        for back in [Outer::V2Ipv4(moved, worn, udp), outer(2, 1, 78)] {
            let back = Route::back(&received(back));
            assert_eq!((back, hash(back)), (there, hash(there)));
            let path = back.path(PathId(1));
            let Outer::V2Ipv4(_, ip, _) = path.outer() else { panic!() };
            assert_eq!((ip.ttl, ip.tos), (64, 0), "as if nothing had happened to it");
        }
        assert_ne!(Route::back(&received(outer(3, 1, 0))), there);
        assert_ne!(Route::back(&received(outer(1, 2, 0))), there);
        let links = [1, 2, 1].map(|n| Route::new(Way::Link(PathId(n))));
        assert!(links[0] != links[1] && links[0] == links[2] && links[0] != there);
    }

    /// To RoCE's own port, a host is a machine; processes that each have a port are each a host.
    #[test]
    fn processes_with_ports_of_their_own_are_each_a_host() {
        let by_ports = |outer: Outer, source, destination| {
            let Outer::V2Ipv4(ethernet, ip, udp) = outer else { panic!() };
            let udp = Udp { source: UdpPort(source), destination: UdpPort(destination), ..udp };
            Outer::V2Ipv4(ethernet, ip, udp)
        };
        let there = |destination| {
            let outer = by_ports(outer(1, 1, 0), 5001, destination);
            Route::along(&Path::new(PathId(1), outer))
        };
        let back = Route::back(&received(by_ports(outer(1, 1, 7), 5002, 5001)));
        assert_eq!(back, there(5002));
        assert_ne!(back, there(5003));
        let Outer::V2Ipv4(.., udp) = *back.path(PathId(1)).outer() else { panic!() };
        assert_eq!((udp.source, udp.destination), (UdpPort(5001), UdpPort(5002)));
        // The source port of a standard peer is a label of the flow, and does not identify the peer.
        let labelled = |label| received(by_ports(outer(2, 1, 7), label, UdpPort::ROCE_V2.0));
        assert_eq!(Route::back(&labelled(50_000)), Route::back(&labelled(60_000)));
    }
}
