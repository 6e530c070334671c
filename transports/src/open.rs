//! Errors of opening a device.

use std::io;
use std::net::IpAddr;

use thiserror::Error;

use crate::holder::Holder;
use crate::host::list;
use crate::look_up::LookUpError;
use crate::sys::interface;

/// The error of a device that can't be opened.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// No interface has the given name.
    #[error(
        "{device}: no interface `{interface}`; `ip link` lists what there is: {}", .there.join(", ")
    )]
    NoInterface {
        /// The name of the device.
        device: &'static str,
        /// The name of the interface.
        interface: Box<str>,
        /// The interfaces that exist here.
        there: Vec<String>,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The interface is no Ethernet.
    #[error("{device}: interface `{interface}` is no Ethernet; `udp` works wherever IP does")]
    NotEthernet {
        /// The name of the device.
        device: &'static str,
        /// The name of the interface.
        interface: Box<str>,
    },
    /// Frames for addresses other than its own do not arrive at the interface.
    #[error(
        "{device}: to `{interface}`, of the kind {driver}, come only frames for its own address; \
         `packet:{interface}` uses that one"
    )]
    OwnOnly {
        /// The name of the device.
        device: &'static str,
        /// The name of the interface.
        interface: Box<str>,
        /// The name of its driver.
        driver: String,
    },
    /// No interface of this machine has the address.
    #[error(
        "{device}: {address} is no address of this machine's; `ip address` lists what there is: \
         {}{}",
        list(.there), brackets(*.address)
    )]
    NoAddress {
        /// The name of the device.
        device: &'static str,
        /// The address that was given.
        address: IpAddr,
        /// The addresses that this machine has.
        there: Vec<IpAddr>,
    },
    /// No address of a wildcard's family is here that the wildcard could stand for.
    #[error(
        "{device}: no interface that is up has an {} address that {wildcard} could stand for; \
         `ip address` lists what there is", if .wildcard.is_ipv4() { "IPv4" } else { "IPv6" }
    )]
    NoFamily {
        /// The name of the device.
        device: &'static str,
        /// The wildcard that was given.
        wildcard: IpAddr,
    },
    /// The host name by which a device was to be opened is not known.
    #[error(transparent)]
    LookUp(#[from] LookUpError),
    /// The host name by which a device was to be opened is another machine's.
    #[error(
        "{device}: the host name `{name}` stands for {}, and this machine has {}: a device is \
         opened at its own machine's address, and the peer's goes where it is connected to",
        list(.found), list(.there)
    )]
    ElsewhereNamed {
        /// The name of the device.
        device: &'static str,
        /// The host name that was given.
        name: Box<str>,
        /// The addresses that the resolver has for the name.
        found: Vec<IpAddr>,
        /// The addresses that this machine has.
        there: Vec<IpAddr>,
    },
    /// Text that can be no name of a device of shared memory.
    #[error("{device}: `{}` can't be a name: {why}", .name.escape_debug())]
    Name {
        /// The name of the device.
        device: &'static str,
        /// The name that was given.
        name: Box<str>,
        /// The reason why the text can be no name.
        why: String,
    },
    /// The interface is not up.
    #[error("{device}: interface `{interface}` is down; `ip link set {interface} up` takes it up")]
    Down {
        /// The name of the device.
        device: &'static str,
        /// The name of the interface.
        interface: Box<str>,
    },
    /// The interface's MTU leaves no room for the smallest packets.
    #[error(
        "{device}: interface `{interface}` has an MTU of {mtu}, and {least} is the least that the \
         smallest packets fit; `ip link set {interface} mtu {least}` sets it"
    )]
    SmallMtu {
        /// The name of the device.
        device: &'static str,
        /// The name of the interface.
        interface: Box<str>,
        /// The MTU of the interface.
        mtu: u32,
        /// The least MTU that the smallest packets fit.
        least: u32,
    },
    /// The system does not allow this process to open the device.
    #[error("{device}: {what} is not allowed; {advice}")]
    Privilege {
        /// The name of the device.
        device: &'static str,
        /// The step of opening the device that failed.
        what: String,
        /// The error that the system returned.
        source: io::Error,
        /// The advice to the user, in words.
        advice: &'static str,
    },
    /// The address or the name is another process's.
    #[error("{device}: {what} is taken{}; {advice}", by_whom(.by))]
    Taken {
        /// The name of the device.
        device: &'static str,
        /// The address or the name that is taken.
        what: String,
        /// The user and the process that have the address or the name, where that can be told.
        by: Option<Holder>,
        /// The error that the system returned.
        source: io::Error,
        /// The advice to the user, in words.
        advice: &'static str,
    },
    /// The system refused a step of opening the device.
    #[error("{device} failed: {what}")]
    System {
        /// The name of the device.
        device: &'static str,
        /// The step of opening the device that failed.
        what: String,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// Returns the part of an error that names the holder of an address or a name.
fn by_whom(holder: &Option<Holder>) -> String {
    holder.as_ref().map_or_else(String::new, |holder| format!(" by {holder}"))
}

/// Returns the part of an error about the form of an IPv6 address that no interface has.
fn brackets(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "",
        IpAddr::V6(_) => " (in front of a port, it goes in brackets, as in udp:[::1]:5000)",
    }
}

impl DeviceError {
    /// Makes the error of an interface that could not be looked up.
    pub(crate) fn interface(device: &'static str, interface: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                let there = interface::names();
                Self::NoInterface { device, interface: interface.into(), there, source }
            }
            _ => {
                Self::System { device, what: format!("looking at interface `{interface}`"), source }
            }
        }
    }

    /// Makes the error of a raw socket on an interface that could not be opened.
    pub(crate) fn raw(device: &'static str, interface: &str, source: io::Error) -> Self {
        let what = format!("a raw socket on `{interface}`");
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege {
                device,
                what,
                source,
                advice: "it takes CAP_NET_RAW: run as root, in a user namespace of its own, or after \
                         `setcap cap_net_raw+ep` on the program; `udp` needs no privilege",
            },
            _ => Self::System { device, what, source },
        }
    }
}
