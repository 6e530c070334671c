//! The address of this machine at which a device is opened, where none is given: the one by which
//! other machines come, the one that a host name stands for, or the one that a peer is reached
//! from.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use doorbell_core::wire::UdpPort;

use super::error::{NAME, no_route};
use super::headers;
use crate::address::{Address, ReachError};
use crate::host_name::HostName;
use crate::open::DeviceError;
use crate::sys::interface;
use crate::sys::udp::UdpSocket;

/// Addresses to which only the default route leads. Nothing is sent there. The one of IPv4 is of
/// TEST-NET-3, and the one of IPv6 of a block that is not assigned.
const BEYOND_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const BEYOND_V6: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 1);

/// Finds the address that a wildcard stands for: the one that this machine's default route leaves
/// from; without such a route the first of an interface that is up; or else loopback's.
pub(super) fn behind_wildcard(wildcard: SocketAddr) -> Result<SocketAddr, DeviceError> {
    let what = || format!("looking for the address that {wildcard} stands for");
    let system = |source| DeviceError::System { device: NAME, what: what(), source };
    let routed = by_default_route(wildcard).map_err(system)?;
    let chosen = match routed {
        Some(ip) => Some(ip),
        None => of_an_interface(wildcard).map_err(system)?,
    };
    let none = || DeviceError::NoFamily { device: NAME, wildcard: wildcard.ip() };
    chosen.map(|ip| SocketAddr::new(ip, wildcard.port())).ok_or_else(none)
}

/// Finds the address that packets to a peer leave from, with the port from which the peer is
/// reached.
///
/// On the loopback network of IPv4, the peer itself often has RoCE's own port of 127.0.0.1, which
/// other clients would need, too. So the address is drawn at random from that network there.
pub(super) fn towards(peer: SocketAddr) -> Result<SocketAddr, ReachError> {
    let address = || Address::Udp(peer);
    if let Some(why) = headers::not_a_peers(peer) {
        return Err(ReachError::NoPeers { address: address(), why });
    }
    let asks = || {
        let asks = UdpSocket::open(peer)?;
        asks.prefer_lasting_address()?;
        asks.connect(peer)?;
        asks.local()
    };
    let own = asks().map_err(|source| no_route(peer, source))?;
    Ok(match (own, peer.port() == UdpPort::ROCE_V2.0) {
        (SocketAddr::V4(v4), true) if v4.ip().is_loopback() => {
            SocketAddr::new(any_of_loopback().into(), peer.port())
        }
        (mut own, is_roces) => {
            own.set_port(if is_roces { peer.port() } else { 0 });
            own
        }
    })
}

/// Draws an address of IPv4's loopback network at random.
fn any_of_loopback() -> Ipv4Addr {
    let [a, b, c, ..] = RandomState::new().hash_one(0).to_ne_bytes();
    Ipv4Addr::new(127, 1 + a % 254, b, 1 + c % 254)
}

/// Finds the address that packets to other networks leave from, if there is a route for them.
fn by_default_route(wildcard: SocketAddr) -> io::Result<Option<IpAddr>> {
    let beyond = match wildcard {
        SocketAddr::V4(_) => BEYOND_V4.into(),
        SocketAddr::V6(_) => BEYOND_V6.into(),
    };
    let asks = UdpSocket::open(wildcard)?;
    asks.prefer_lasting_address()?;
    // Whatever the error is, there is no route that could be used.
    if asks.connect(SocketAddr::new(beyond, 9)).is_err() {
        return Ok(None);
    }
    Ok(Some(asks.local()?.ip()).filter(|&ip| is_for_others(ip)))
}

/// Finds the first address of an interface that is up by which other machines may come, or else
/// loopback's.
fn of_an_interface(wildcard: SocketAddr) -> io::Result<Option<IpAddr>> {
    let interfaces = interface::all()?;
    let addresses = || {
        let up = interfaces.iter().filter(|interface| interface.is_up());
        let addresses = up.flat_map(|interface| interface.ips.iter().map(|network| network.ip()));
        addresses.filter(|ip| ip.is_ipv4() == wildcard.is_ipv4())
    };
    Ok(addresses().find(|&ip| is_for_others(ip)).or_else(|| addresses().find(IpAddr::is_loopback)))
}

/// Returns whether other machines can reach an address without knowing which interface has it.
fn is_for_others(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_unspecified() && !ip.is_loopback() && !is_link_local
}

/// Finds the address of this machine's that a host name stands for. Of several, addresses that
/// other machines can reach go before loopback's, and IPv4 before IPv6, whatever the resolver's
/// order: so both ends of a connection that are opened by name agree on the family.
pub(super) fn behind_name(host: &HostName) -> Result<SocketAddr, DeviceError> {
    let found = host.look_up()?;
    let what = || format!("looking for the addresses of `{}` on the interfaces", host.name());
    let mut own = Vec::new();
    for &address in &found {
        let holder = interface::holder(address.ip());
        let system = |source| DeviceError::System { device: NAME, what: what(), source };
        if holder.map_err(system)?.is_some() {
            own.push(address);
        }
    }
    own.sort_by_key(|address| (!is_for_others(address.ip()), address.is_ipv6()));
    own.first().copied().ok_or_else(|| DeviceError::ElsewhereNamed {
        device: NAME,
        name: host.name().into(),
        found: found.iter().map(SocketAddr::ip).collect(),
        there: interface::addresses(),
    })
}
