//! Devices that a program picks by name while it runs.

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
use crate::open::DeviceError;
use crate::packet::Packet;
use crate::packet_v2::{Network, NetworkError, PacketV2, Settings};
use crate::shm::Shm;
use crate::sys::unix::PeerProcess;
use crate::udp::Udp;

/// A device to be opened, and on what. As text, this is the form of `--device` and of configuration
/// files.
///
/// | | |
/// |---|---|
/// | `shm:job/0` | shared memory, joined by that name |
/// | `shm` | shared memory, joined by a name that nobody else has |
/// | `udp:192.0.2.7`, `udp:[::1]:5000` | a UDP socket at an address of this machine's, RoCE v2 |
/// | `udp:node7:5000`, `udp:localhost` | a UDP socket at the address that a host name stands for |
/// | `udp:0.0.0.0:5000`, `udp:[::]` | a UDP socket at the address by which other machines come |
/// | `packet:eth0` | raw Ethernet on that interface, RoCE v1 |
/// | `packet-v2:eth0` | raw Ethernet on that interface, RoCE v2, with an IPv6 address of its own |
/// | `packet-v2:eth0,192.0.2.7/24` | the same with this address, in a network of 24 bits |
///
/// Without a port, a UDP socket is opened at RoCE's own, 4791; with port 0, at one that the system
/// chooses. The
/// [module](crate::udp#wildcards) says which address a wildcard stands for, and
/// [`Udp::open_named`] which one a host name does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spec {
    /// Raw Ethernet on an interface, by RoCE v1.
    Packet(Box<str>),
    /// Raw Ethernet on an interface, by RoCE v2.
    PacketV2(Box<str>, Option<Network>),
    /// Shared memory, joined by a name: without one, by a name that no other device has.
    Shm(Option<Box<str>>),
    /// A UDP socket at an address, by RoCE v2.
    Udp(SocketAddr),
    /// A UDP socket at the address that a host name of this machine stands for, by RoCE v2.
    UdpNamed(HostName),
}

/// The error of text that names no device.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SpecError {
    /// The text does not begin with the name of a device.
    #[error(
        "`{0}` names no device: it is shm, shm:NAME, udp:HOST[:PORT], packet:INTERFACE or \
         packet-v2:INTERFACE[,IP/PREFIX], where HOST is an IP address or a name of this machine's"
    )]
    Device(String),
    /// The text behind the device's name is missing, or has not the right form.
    #[error("`{found}` names no device: behind `{device}:` goes {takes}")]
    Form {
        /// The name of the device.
        device: &'static str,
        /// The form of the text that has to follow the name.
        takes: &'static str,
        /// The whole text that was read.
        found: String,
    },
    /// The text behind the interface's name is no address in a network.
    #[error("`{found}` names no device: {why}")]
    Network {
        /// The whole text that was read.
        found: String,
        /// The error of reading the address.
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
    /// Opens the device, for the queue pairs that `numbering` calls this process's. If the device
    /// is given by a host name, this blocks the thread while the name is looked up.
    ///
    /// # Errors
    /// As the `open` of the device.
    pub fn open(&self, numbering: Numbering) -> Result<AnyDevice, DeviceError> {
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

/// Any of the devices of this crate. Each call takes a branch to the device's own.
#[allow(clippy::large_enum_variant, reason = "few are made, and none is moved about")]
pub enum AnyDevice {
    /// Raw Ethernet, by RoCE v1.
    Packet(Packet),
    /// Raw Ethernet, by RoCE v2.
    PacketV2(PacketV2),
    /// Shared memory, by its name.
    Shm(Shm),
    /// A UDP socket, by RoCE v2.
    Udp(Udp),
}

impl AnyDevice {
    /// Makes the device send each packet in a frame of its own.
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

/// Makes the same call on whichever device it is.
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
    fn time(&self) -> Option<Time> {
        each!(self, device => device.time())
    }

    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        each!(self, device => device.delivered(path))
    }
}

/// Calls [`Shm::push`], which is compiled into each of its callers. Of those, a NIC over any device
/// has many, so this is compiled once.
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
