//! Addresses of devices, as text and as values.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use doorbell_core::wire::{Mac, UdpPort};
use thiserror::Error;

use crate::holder::{Holder, running_as};
use crate::host_name::HostName;

/// The address at which a device is reached. As text it begins with the device's name:
///
/// | | |
/// |---|---|
/// | `shm:job/0` | the device that joined shared memory as `job/0` |
/// | `udp:192.0.2.1`, `udp:[2001:db8::1]:5000` | a socket, at RoCE's port 4791 or another |
/// | `packet:02:00:5e:10:00:01` | an interface of this Ethernet, by RoCE v1 |
/// | `packet-v2:192.0.2.7`, `packet-v2:fe80::5e:1` | a neighbour, by RoCE v2 |
/// | `fabric:3` | a station of a simulated network |
///
/// The name of a host, as in `udp:node7:5000`, is no address: it must be looked up, which takes a
/// while. Reading one as an address is an error that has the [`HostName`] in it.
///
/// ```
/// use doorbell_transports::Address;
///
/// let address: Address = "udp:[::1]:4791".parse()?;
/// assert_eq!(address.to_string(), "udp:[::1]:4791");
/// assert!("udp:somewhere".parse::<Address>().is_err());
/// # Ok::<(), doorbell_transports::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// The name of a device of this machine's shared memory.
    Shm(Box<str>),
    /// The IP address and the port of a UDP socket.
    Udp(SocketAddr),
    /// The Ethernet address of an interface, for RoCE v1.
    Packet(Mac),
    /// The IP address of a neighbour, for RoCE v2.
    PacketV2(IpAddr),
    /// The number of a station of a simulated network.
    Fabric(u32),
}

/// The error of text that is no address.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AddressError {
    /// The text does not begin with the name of a device.
    #[error(
        "`{0}` names no device: an address is shm:NAME, udp:HOST[:PORT], packet:MAC, packet-v2:IP \
         or fabric:N"
    )]
    Device(String),
    /// The text names a host, whose address must be looked up first.
    #[error("`udp:{0}` names a host, and its address has to be looked up first")]
    Name(HostName),
    /// The text behind the device's name has not the form of an address.
    #[error("`{found}` is no address for {device}: it takes {takes}")]
    Form {
        /// The name of the device.
        device: &'static str,
        /// The form of its addresses.
        takes: &'static str,
        /// The text behind the device's name.
        found: String,
    },
}

/// The error of a peer that can't be reached.
#[derive(Debug, Error)]
pub enum ReachError {
    /// The address is for another kind of device.
    #[error("{address} can't be reached by a {device} device: that reaches {takes}")]
    Kind {
        /// The address of the peer.
        address: Address,
        /// The name of this device.
        device: &'static str,
        /// The form of the addresses that this device reaches.
        takes: &'static str,
    },
    /// The address can't be a peer's.
    #[error("{address} can't be the address of a peer: {why}")]
    NoPeers {
        /// The address of the peer.
        address: Address,
        /// The reason, in words.
        why: &'static str,
    },
    /// No device answered at the address.
    #[error("nobody at {address} answers ({why}): {}", whether_there(.address))]
    Nobody {
        /// The address of the peer.
        address: Address,
        /// The step at which no answer came, in words.
        why: &'static str,
    },
    /// The peer is there, and refused a link.
    #[error("{address} refuses a link: {why}")]
    Refused {
        /// The address of the peer.
        address: Address,
        /// The reason that the peer has given.
        why: &'static str,
    },
    /// A process of another user has the name, and the two do not link up.
    #[error(
        "{address} is the name of {holder}, and this process runs as {}: those link up that run as \
         the same user, so run both as one", running_as(.own)
    )]
    Stranger {
        /// The address of the peer.
        address: Address,
        /// The user and the process that have the name.
        holder: Holder,
        /// The user of this process, if the user has a number of its own.
        own: Option<u32>,
    },
    /// The peer is behind a router.
    #[error(
        "{address} is no neighbour of {own}: {device} speaks to its own network only, and uses no \
         gateway; `udp` goes wherever IP does"
    )]
    Beyond {
        /// The address of the peer.
        address: Address,
        /// The device's own address, and the network that it is in.
        own: String,
        /// The name of this device.
        device: &'static str,
    },
    /// Exactly one of the two devices is at RoCE's own port.
    #[error(
        "{address} can't be reached from port {own}: what answers RoCE's own port, 4791, goes to \
         that port; open both devices there, or neither"
    )]
    Port {
        /// The address of the peer.
        address: Address,
        /// The port of this device.
        own: u16,
    },
    /// The way there is too narrow for this device's packets.
    #[error(
        "the way to {address} takes {mtu} bytes at once, and this device's packets take up to \
         {least}: set its interface's MTU to {mtu} (`ip link set <interface> mtu {mtu}`), and open \
         it anew"
    )]
    Narrow {
        /// The address of the peer.
        address: Address,
        /// The MTU of the way to the peer.
        mtu: u32,
        /// The MTU that the way should have.
        least: u32,
    },
    /// The device has as many peers as it allows.
    #[error("{address} would be one peer more than the {most} that this device keeps")]
    TooMany {
        /// The address of the peer.
        address: Address,
        /// The most peers of this device.
        most: usize,
    },
    /// The system refused a step on the way to the peer.
    #[error("reaching {address} failed")]
    System {
        /// The address of the peer.
        address: Address,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// Returns the question that an error asks when nobody answers at an address.
fn whether_there(address: &Address) -> &'static str {
    match address {
        Address::Shm(_) => {
            "is its program running on this machine, in the same network namespace (a container \
             has its own), under this name?"
        }
        _ => "is the peer running, and on this network?",
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shm(name) => write!(f, "shm:{name}"),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Packet(mac) => write!(f, "packet:{mac}"),
            Self::PacketV2(address) => write!(f, "packet-v2:{address}"),
            Self::Fabric(station) => write!(f, "fabric:{station}"),
        }
    }
}

/// Reads an IP address and a port, which is RoCE's own unless another is given.
pub(crate) fn socket(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let port = UdpPort::ROCE_V2.0;
    let ip = || bare.parse().ok().map(|ip| SocketAddr::new(ip, port));
    // With an interface's number behind it, an IPv6 address is no `IpAddr`.
    text.parse().ok().or_else(ip).or_else(|| format!("[{bare}]:{port}").parse().ok())
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (device, rest) = text.split_once(':').unwrap_or((text, ""));
        let form = |device, takes| AddressError::Form { device, takes, found: rest.to_owned() };
        match device {
            "shm" if !rest.is_empty() => Ok(Self::Shm(rest.into())),
            "shm" => Err(form("shm", "the name that the peer joined by")),
            "udp" => {
                if let Some(address) = socket(rest) {
                    return Ok(Self::Udp(address));
                }
                let takes = "an IP address or a host name, and a port if it is not 4791";
                let host = rest.parse().map_err(|_| form("udp", takes))?;
                Err(AddressError::Name(host))
            }
            "packet" => {
                let mac = rest.parse().map(Self::Packet);
                mac.map_err(|_| form("packet", "an Ethernet address, six pairs of hex digits"))
            }
            "packet-v2" => {
                let address = rest.parse().map(Self::PacketV2);
                address.map_err(|_| form("packet-v2", "an IP address"))
            }
            "fabric" => {
                let station = rest.parse().map(Self::Fabric);
                station.map_err(|_| form("fabric", "the number of a station"))
            }
            _ => Err(AddressError::Device(text.to_owned())),
        }
    }
}
