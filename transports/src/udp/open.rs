//! Opening a device: at an address, by a host name, for a client.

use std::net::SocketAddr;

use super::error::{NAME, refused};
use super::state::Udp;
use super::{headers, local_address};
use crate::address::ReachError;
use crate::host_name::HostName;
use crate::open::DeviceError;
use crate::raw::BoundInterface;
use crate::sys::interface;
use crate::sys::udp::UdpSocket;

impl Udp {
    /// Opens a socket at an address of this machine's, or at the one that a
    /// [wildcard](crate::udp#wildcards) stands for. If the port is 0, the system chooses one.
    ///
    /// # Errors
    /// When no interface here has the address, or the interface is down or its MTU too small; when
    /// somebody has the port; when there is no address that the wildcard could stand for.
    pub fn open(own: SocketAddr) -> Result<Self, DeviceError> {
        let own =
            if own.ip().is_unspecified() { local_address::behind_wildcard(own)? } else { own };
        let system =
            |source| DeviceError::System { device: NAME, what: format!("at {own}"), source };
        let listener = UdpSocket::open(own).map_err(system)?;
        let nobodys = || {
            let (address, there) = (own.ip(), interface::addresses());
            DeviceError::NoAddress { device: NAME, address, there }
        };
        let holder = interface::holder(own.ip()).map_err(system)?.ok_or_else(nobodys)?;
        let (interface, found) = BoundInterface::of_any_kind(NAME, &holder)?;
        let own = on_interface(own, found.index);
        listener.bind(own).map_err(|source| refused(own, source))?;
        Self::over(listener, interface).map_err(system)
    }

    /// Opens a socket at an address of this machine's that the resolver has for a host name. Of
    /// several, one that is not loopback's is preferred, and among those one of IPv4. This blocks
    /// the thread while the name is looked up.
    ///
    /// # Errors
    /// When the resolver does not know the name, or none of its addresses is this machine's; and as
    /// [`open`](Self::open).
    pub fn open_named(host: &HostName) -> Result<Self, DeviceError> {
        Self::open(Self::own_address(host)?)
    }

    /// Returns the address at which [`open_named`](Self::open_named) opens a socket, for programs
    /// that look names up on threads of their own. This blocks the thread.
    ///
    /// # Errors
    /// When the resolver does not know the name, or none of its addresses is this machine's.
    pub fn own_address(host: &HostName) -> Result<SocketAddr, DeviceError> {
        local_address::behind_name(host)
    }

    /// Returns the address of this machine's from which the system's route leads to a peer: a
    /// loopback address for a peer at one. Nothing is sent.
    ///
    /// The port is 0, for the system to choose one. If the peer is at RoCE's own port, the port is
    /// that one, since such a peer answers to no other; and for a peer at a loopback address of
    /// IPv4, the address is then drawn at random from the loopback network.
    ///
    /// # Errors
    /// When no route leads to the peer, or the address can be no peer's.
    pub fn own_address_towards(peer: SocketAddr) -> Result<SocketAddr, ReachError> {
        local_address::towards(peer)
    }

    /// Makes the device take packets only from addresses that it has
    /// [reached](crate::Device::reach) itself. Packets of others are dropped before anything of
    /// them is read, and [counted](crate::Statistics::strangers). Standard peers send to RoCE's own
    /// port from any port: a device at that port hears all ports of a host that it has reached, and
    /// any other device only the port that it has reached.
    #[must_use]
    pub fn without_strangers(mut self) -> Self {
        self.senders.keep_out_strangers();
        self
    }

    /// Makes the device send each packet in a frame of its own, and has the system put none
    /// together: for comparisons.
    #[must_use]
    pub fn without_offload(mut self) -> Self {
        (self.run_most, self.capabilities.run, self.capabilities.segmentation) = (1, 1, false);
        self.target.run = 1;
        // It can't fail: the option could be switched on.
        let _ = self.listener.put_together(false);
        self
    }

    /// Returns how many peers have sockets of their own at this moment.
    pub fn connected(&self) -> usize {
        self.peers.len()
    }

    /// Lists the addresses of the peers that have sockets of their own at this moment.
    pub fn peers(&self) -> impl Iterator<Item = SocketAddr> {
        self.peers.iter().map(|peer| peer.address)
    }
}

/// Adds the number of an interface to a link-local address that was given without one.
fn on_interface(own: SocketAddr, index: u32) -> SocketAddr {
    match own {
        SocketAddr::V6(v6) if v6.scope_id() == 0 => {
            headers::scoped(*v6.ip(), v6.port(), index).into()
        }
        _ => own,
    }
}
