//! Looking up the addresses of a host by its name.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use thiserror::Error;

use crate::address::Address;
use crate::host::list;
use crate::host_name::HostName;
use crate::sys::interface;

/// The error of a host's name for which there is no address.
#[derive(Debug, Error)]
pub enum LookUpError {
    /// The system's resolver gave no address.
    #[error(
        "looking up the host name `{name}` failed: check its spelling (`getent ahosts {name}` asks \
         as this does), or give an IP address instead{}", an_interface(.name, .interface)
    )]
    Failed {
        /// The name of the host.
        name: Box<str>,
        /// The addresses of the interface that has this name, if one has.
        interface: Option<Vec<IpAddr>>,
        /// The error that the resolver returned.
        source: io::Error,
    },
    /// The host has only addresses of another family than the device's.
    #[error(
        "the host `{name}` has no {} address, only {}, and this device is open at {own}: open it \
         at an {} address, or at a wildcard of that family (`udp:{}`)",
        family(*.own), list(.found), other_family(*.own), other_wildcard(*.own)
    )]
    OtherFamily {
        /// The name of the host.
        name: Box<str>,
        /// The addresses that the host has.
        found: Vec<IpAddr>,
        /// The address of the device that was to reach it.
        own: IpAddr,
    },
    /// The device reaches no peers by the names of their hosts.
    #[error(
        "`udp:{host}` names a host, and only `udp` devices reach hosts by name: this one is {own}"
    )]
    NotUdp {
        /// The name of the host.
        host: HostName,
        /// The address of the device that was to reach it.
        own: Address,
    },
}

impl HostName {
    /// Returns the addresses that the system's resolver has for the host, in the resolver's order.
    /// This blocks the thread, for as long as the resolver takes: seconds, if a name server is
    /// silent.
    ///
    /// # Errors
    /// When the resolver has no address.
    pub fn look_up(&self) -> Result<Vec<SocketAddr>, LookUpError> {
        let failed = |source| {
            let interface = interface::addresses_of(self.name());
            LookUpError::Failed { name: self.name().into(), interface, source }
        };
        let found = (self.name(), self.port()).to_socket_addrs().map_err(failed)?;
        let mut addresses = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        match addresses.is_empty() {
            true => Err(failed(io::Error::new(io::ErrorKind::NotFound, "it has no IP address"))),
            false => Ok(addresses),
        }
    }

    /// Returns the first address of the host that a device at the address `own` can send to, which
    /// is one of the same family. This blocks the thread as [`look_up`](Self::look_up) does.
    ///
    /// # Errors
    /// When the resolver has no address, or none of that family; when `own` is not a UDP socket's.
    pub fn look_up_for(&self, own: &Address) -> Result<Address, LookUpError> {
        let &Address::Udp(socket) = own else {
            return Err(LookUpError::NotUdp { host: self.clone(), own: own.clone() });
        };
        let found = self.look_up()?;
        let fits = found.iter().find(|address| address.is_ipv4() == socket.is_ipv4());
        fits.map(|&address| Address::Udp(address)).ok_or_else(|| LookUpError::OtherFamily {
            name: self.name().into(),
            found: found.iter().map(SocketAddr::ip).collect(),
            own: socket.ip(),
        })
    }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn other_family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv6" } else { "IPv4" }
}

fn other_wildcard(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "[::]:0" } else { "0.0.0.0:0" }
}

/// Returns the part of an error about a name that is an interface's.
fn an_interface(name: &str, addresses: &Option<Vec<IpAddr>>) -> String {
    match addresses.as_deref() {
        None => String::new(),
        Some([]) => format!("; `{name}` is an interface here, without an IP address"),
        Some(addresses) => format!("; `{name}` is an interface here, with {}", list(addresses)),
    }
}
