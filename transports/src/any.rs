//! A device picked by name while a program runs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::str::FromStr;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Numbering, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::Headers;
use thiserror::Error;

use crate::address::{Address, ReachError, socket};
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::grant::{Grant, GrantError, SharedMemory};
use crate::host_name::HostName;
use crate::open::OpenError;
use crate::packet::Packet;
use crate::packet_v2::{Network, NetworkError, PacketV2, Settings};
use crate::shm::Shm;
use crate::sys::process::PeerProcess;
use crate::udp::Udp;

/// Which device, and on what, as text: the form of `--device` and of configuration files.
///
/// | | |
/// |---|---|
/// | `shm:job/0` | shared memory, joined by that name |
/// | `shm` | shared memory, joined by a name that nobody else has |
/// | `udp:192.0.2.7`, `udp:[::1]:5000` | a UDP socket at an address of this machine's, RoCE v2 |
/// | `udp:node7:5000`, `udp:localhost` | the same at an address that a host name stands for |
/// | `udp:0.0.0.0:5000`, `udp:[::]` | the same at the address by which other machines come |
/// | `packet:eth0` | raw Ethernet on that interface, RoCE v1 |
/// | `packet-v2:eth0` | the same by RoCE v2, with an IPv6 address of its own |
/// | `packet-v2:eth0,192.0.2.7/24` | the same with that address, in a network of 24 bits |
///
/// A UDP port that is not named is RoCE's own, 4791; of port 0, the system chooses one. The
/// [module](crate::udp#wildcards) says which address a wildcard stands for, and
/// [`Udp::open_named`] which one a host name does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spec {
    /// Raw Ethernet on an interface, by RoCE v1.
    Packet(Box<str>),
    /// Raw Ethernet on an interface, by RoCE v2.
    PacketV2(Box<str>, Option<Network>),
    /// Shared memory, by a name; by one that nobody else has, where none is given.
    Shm(Option<Box<str>>),
    /// A UDP socket at an address, RoCE v2.
    Udp(SocketAddr),
    /// A UDP socket at an address that this machine has by a host name, RoCE v2.
    UdpNamed(HostName),
}

/// Text that names no device.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SpecError {
    /// The text does not begin with the name of a device.
    #[error(
        "`{0}` names no device: it is shm, shm:NAME, udp:HOST[:PORT], packet:INTERFACE or \
         packet-v2:INTERFACE[,IP/PREFIX], where HOST is an IP address or a name of this machine's"
    )]
    Device(String),
    /// What follows the name of the device is missing, or not what it must be.
    #[error("`{found}` names no device: behind `{device}:` goes {takes}")]
    Form {
        /// The name of the device.
        device: &'static str,
        /// What has to follow it.
        takes: &'static str,
        /// The whole text.
        found: String,
    },
    /// The address that follows the interface's name is none.
    #[error("`{found}` names no device: {why}")]
    Network {
        /// The whole text.
        found: String,
        /// What is wrong with the address.
        why: NetworkError,
    },
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (device, rest) = text.split_once(':').unwrap_or((text, ""));
        let form = |device, takes| SpecError::Form { device, takes, found: text.to_owned() };
        match device {
            "shm" => Ok(Self::Shm((!rest.is_empty()).then(|| rest.into()))),
            "udp" => {
                let takes = "an IP address or a host name of this machine's, and a port up to \
                             65535 if it is not 4791, as in udp:192.0.2.7:5000 or \
                             udp:[2001:db8::7]:5000; udp:0.0.0.0:0 leaves the choice of both to \
                             the system";
                let named = || rest.parse().map(Self::UdpNamed).map_err(|_| form("udp", takes));
                socket(rest).map(Self::Udp).map_or_else(named, Ok)
            }
            "packet" if rest.is_empty() => {
                Err(form("packet", "the name of an interface (`ip link` lists them)"))
            }
            "packet" => Ok(Self::Packet(rest.into())),
            "packet-v2" => {
                let (interface, network) = match rest.split_once(',') {
                    Some((interface, network)) => (interface, Some(network.parse())),
                    None => (rest, None),
                };
                if interface.is_empty() {
                    let takes = "the name of an interface (`ip link` lists them), and behind a \
                                 comma an address for the device if that is to have one";
                    return Err(form("packet-v2", takes));
                }
                let wrong = |why| SpecError::Network { found: text.to_owned(), why };
                Ok(Self::PacketV2(interface.into(), network.transpose().map_err(wrong)?))
            }
            _ => Err(SpecError::Device(text.to_owned())),
        }
    }
}

impl Spec {
    /// Opens the device, for the queue pairs that `numbering` calls this process's. This blocks the
    /// thread while a host name is looked up; an address is not.
    ///
    /// # Errors
    /// As the device's own `open`.
    pub fn open(&self, numbering: Numbering) -> Result<AnyDevice, OpenError> {
        match self {
            Self::Packet(interface) => Packet::open(interface, numbering).map(AnyDevice::Packet),
            Self::PacketV2(interface, network) => {
                let settings = Settings { network: *network, ..Settings::default() };
                PacketV2::open(interface, settings).map(AnyDevice::PacketV2)
            }
            Self::Shm(Some(name)) => Shm::join(name).map(AnyDevice::Shm),
            Self::Shm(None) => Shm::join_unique().map(AnyDevice::Shm),
            Self::Udp(address) => Udp::open(*address).map(AnyDevice::Udp),
            Self::UdpNamed(host) => Udp::open_named(host).map(AnyDevice::Udp),
        }
    }
}

/// Any of the devices: a branch before each call, and nothing else.
#[allow(clippy::large_enum_variant, reason = "few are made, and none is moved about")]
pub enum AnyDevice {
    /// Raw Ethernet, by RoCE v1.
    Packet(Packet),
    /// Raw Ethernet, by RoCE v2.
    PacketV2(PacketV2),
    /// Shared memory.
    Shm(Shm),
    /// A UDP socket, RoCE v2.
    Udp(Udp),
}

impl AnyDevice {
    /// The same device, but that it sends a frame a packet.
    #[must_use]
    pub fn without_offload(self) -> Self {
        match self {
            Self::Packet(device) => Self::Packet(device.without_offload()),
            Self::PacketV2(device) => Self::PacketV2(device.without_offload()),
            Self::Shm(device) => Self::Shm(device),
            Self::Udp(device) => Self::Udp(device.without_offload()),
        }
    }
}

/// Does the same with whichever it is.
macro_rules! each {
    ($any:expr, $device:ident => $do:expr) => {
        match $any {
            AnyDevice::Packet($device) => $do,
            AnyDevice::PacketV2($device) => $do,
            AnyDevice::Shm($device) => $do,
            AnyDevice::Udp($device) => $do,
        }
    };
}

impl Outbox for AnyDevice {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        match self {
            Self::Packet(device) => device.push(path, headers, payload),
            Self::PacketV2(device) => device.push(path, headers, payload),
            Self::Shm(device) => push_apart(device, path, headers, payload),
            Self::Udp(device) => device.push(path, headers, payload),
        }
    }

    #[inline]
    fn prepare(&mut self, path: PathId) {
        each!(self, device => device.prepare(path));
    }

    #[inline]
    fn flush(&mut self) {
        each!(self, device => device.flush());
    }

    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        each!(self, device => device.delivered(path))
    }
}

/// [`Shm::push`] is compiled into each of its callers, of which a NIC over any device has many.
#[inline(never)]
fn push_apart(
    device: &mut Shm,
    path: &Path,
    headers: Headers,
    payload: impl Payload,
) -> Result<u64, Full> {
    device.push(path, headers, payload)
}

impl Device for AnyDevice {
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        each!(self, device => device.capabilities())
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        each!(self, device => device.receive(inbox))
    }

    #[inline]
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        each!(self, device => device.settle(owes));
    }

    #[inline]
    fn now(&self) -> Time {
        each!(self, device => device.now())
    }

    fn address(&self) -> &Address {
        each!(self, device => device.address())
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        each!(self, device => device.reach(peer))
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        each!(self, device => device.readiness())
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        each!(self, device => device.arm(until))
    }

    fn disarm(&mut self) {
        each!(self, device => device.disarm());
    }

    fn trouble(&mut self) -> Option<Trouble> {
        each!(self, device => device.trouble())
    }

    fn statistics(&mut self) -> Statistics {
        each!(self, device => device.statistics())
    }

    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        each!(self, device => device.grant(to, tag, memory))
    }

    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        each!(self, device => device.peer_process(link))
    }

    fn granted(&mut self) -> Option<Grant> {
        each!(self, device => device.granted())
    }
}
