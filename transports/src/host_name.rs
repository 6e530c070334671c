//! Names of hosts, and how their addresses are looked up.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use doorbell_core::wire::UdpPort;
use thiserror::Error;

use crate::address::Address;
use crate::sys::interface;

/// The name of a host, and a port: RoCE's own, 4791, where none is named. As text `node7` or
/// `node7:5000`.
///
/// ```
/// use doorbell_transports::HostName;
///
/// let host: HostName = "localhost:5000".parse().expect("a host's name");
/// let own = "udp:127.0.0.1:4000".parse()?;
/// assert_eq!(host.look_up_for(&own)?, "udp:127.0.0.1:5000".parse()?);
/// assert!("127.0.0.1:5000".parse::<HostName>().is_err(), "an address is no name");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostName {
    name: Box<str>,
    port: u16,
}

/// Text that can be no host's name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` can be no host's name: that has letters, digits and hyphens between dots, does not \
     end in a number, and may be followed by a colon and a port up to 65535"
)]
pub struct HostNameError(String);

/// A host's name for which there is no address.
#[derive(Debug, Error)]
pub enum LookUpError {
    /// The system's resolver gave no address.
    #[error(
        "looking up the host name `{name}` failed: check its spelling (`getent ahosts {name}` asks \
         as this does), or give an IP address instead{}", an_interface(.name, .interface)
    )]
    Failed {
        /// The name.
        name: Box<str>,
        /// The addresses of the interface that has this name, if one has.
        interface: Option<Vec<IpAddr>>,
        /// What the resolver said.
        source: io::Error,
    },
    /// The host has addresses of the other family only.
    #[error(
        "the host `{name}` has no {} address, only {}, and this device is open at {own}: open it \
         at an {} address, or at a wildcard of that family (`udp:{}`)",
        family(*.own), list(.found), other_family(*.own), other_wildcard(*.own)
    )]
    OtherFamily {
        /// The name.
        name: Box<str>,
        /// The addresses that it has.
        found: Vec<IpAddr>,
        /// The address of the device that was to reach it.
        own: IpAddr,
    },
    /// The device reaches no peers by the names of their hosts.
    #[error(
        "`udp:{host}` names a host, and only `udp` devices reach hosts by name: this one is {own}"
    )]
    NotUdp {
        /// The name.
        host: HostName,
        /// The address of the device that was to reach it.
        own: Address,
    },
}

impl HostName {
    /// The host's name, without the port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The addresses that the system's resolver has for the host, in the resolver's order. This
    /// blocks the thread, for as long as the resolver takes: seconds, if a name server is silent.
    ///
    /// # Errors
    /// When the resolver has no address.
    pub fn look_up(&self) -> Result<Vec<SocketAddr>, LookUpError> {
        let failed = |source| {
            let interface = interface::addresses_of(&self.name);
            LookUpError::Failed { name: self.name.clone(), interface, source }
        };
        let found = (&*self.name, self.port).to_socket_addrs().map_err(failed)?;
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

    /// The first address of the host that a device at the address `own` can send to: one of the
    /// same family. This blocks the thread as [`look_up`](Self::look_up) does.
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
            name: self.name.clone(),
            found: found.iter().map(SocketAddr::ip).collect(),
            own: socket.ip(),
        })
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (text, Some(UdpPort::ROCE_V2.0)),
        };
        let port = port.filter(|_| is_name(name)).ok_or_else(|| HostNameError(text.to_owned()))?;
        Ok(Self { name: name.into(), port })
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Whether text is in the form of host names. What ends in a number is an address that was
/// mistyped: resolvers take `192.0.2` for one, too, and complete it.
fn is_name(text: &str) -> bool {
    let labels = || text.strip_suffix('.').unwrap_or(text).split('.');
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(allowed) && !label.starts_with('-')
    };
    let is_number = |label: &str| {
        let digits = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        match digits {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => label.bytes().all(|byte| byte.is_ascii_digit()),
        }
    };
    text.len() <= 253 && labels().all(is_label) && !labels().next_back().is_some_and(is_number)
}

/// Addresses between commas.
pub(crate) fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
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

/// What to say of a name that is an interface's.
fn an_interface(name: &str, addresses: &Option<Vec<IpAddr>>) -> String {
    match addresses.as_deref() {
        None => String::new(),
        Some([]) => format!("; `{name}` is an interface here, without an IP address"),
        Some(addresses) => format!("; `{name}` is an interface here, with {}", list(addresses)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_hosts_name_unless_it_looks_like_an_address_or_has_what_no_name_has() {
        for (text, name, port) in [
            ("node7", "node7", 4791),
            ("node7:5000", "node7", 5000),
            ("node7.example.org.:0", "node7.example.org.", 0),
            ("rack_2-node7", "rack_2-node7", 4791),
            ("7up", "7up", 4791),
        ] {
            let host: HostName = text.parse().expect(text);
            assert_eq!((host.name(), host.port()), (name, port));
            assert_eq!(host.to_string().parse(), Ok(host));
        }
        let long = "n".repeat(64);
        for text in [
            "",
            ".",
            ":5000",
            "node7:",
            "node7:65536",
            "node7:a",
            "a..b",
            "-a",
            "a b",
            "a:1:2",
            "192.0.2.300",
            "192.0.2",
            "7",
            "0x7f000001",
            "node.7",
            "fe80::1%eth0",
            "[::1]",
            "*",
            "nöde",
            &long,
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
