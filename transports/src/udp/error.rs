//! What can be wrong with the addresses of this device and of its peers.

use std::io;
use std::net::SocketAddr;

use crate::address::{Address, ReachError};
use crate::open::DeviceError;

/// The name of the device, which addresses and errors begin with.
pub const NAME: &str = "udp";

/// The error of an address that the system does not give to this device.
pub fn refused(own: SocketAddr, source: io::Error) -> DeviceError {
    match source.kind() {
        io::ErrorKind::AddrInUse => DeviceError::Taken {
            device: NAME,
            what: own.to_string(),
            by: None,
            source,
            advice: "name another port, or port 0, for the system to choose one",
        },
        io::ErrorKind::PermissionDenied => DeviceError::Privilege {
            device: NAME,
            what: own.to_string(),
            source,
            advice: "ports above 1023 are everybody's",
        },
        _ => DeviceError::System { device: NAME, what: format!("at {own}"), source },
    }
}

/// The error of a peer's address `to`, to which the system knows no way from `own`.
pub fn no_way(peer: &Address, own: SocketAddr, to: SocketAddr, source: io::Error) -> ReachError {
    let link_local = |address: SocketAddr| match address {
        SocketAddr::V6(v6) => v6.ip().is_unicast_link_local(),
        SocketAddr::V4(_) => false,
    };
    let why = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "it is the broadcast address of a network here, or a route or a filter here forbids it"
        }
        io::ErrorKind::InvalidInput if own.ip().is_loopback() && !to.ip().is_loopback() => {
            "from a loopback address only this machine is reached; open the device at the address \
             of an interface"
        }
        io::ErrorKind::InvalidInput if link_local(to) && !link_local(own) => {
            "a link-local address means nothing without an interface; open the device at a \
             link-local address of the interface that the peer is behind"
        }
        _ => return ReachError::System { address: peer.clone(), source },
    };
    ReachError::NoPeers { address: peer.clone(), why }
}

/// The error of a peer's address to which no route leads.
pub fn no_route(peer: SocketAddr, source: io::Error) -> ReachError {
    let address = Address::Udp(peer);
    match (source.kind(), peer) {
        (io::ErrorKind::InvalidInput, SocketAddr::V6(v6)) if v6.ip().is_unicast_link_local() => {
            let why = "a link-local address means nothing without an interface: put the number of \
                       the interface behind it (`ip link` lists them), as in udp:[fe80::1%2]:5000";
            ReachError::NoPeers { address, why }
        }
        _ => ReachError::System { address, source },
    }
}
