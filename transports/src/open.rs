//! What can be wrong with opening a device.

use std::io;
use std::net::IpAddr;

use thiserror::Error;

use crate::holder::Holder;
use crate::host_name::{LookUpError, list};
use crate::sys::interface;

/// A device that can't be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no such interface.
    #[error(
        "{device}: no interface `{interface}`; `ip link` lists what there is: {}", .there.join(", ")
    )]
    NoInterface {
        /// The device.
        device: &'static str,
        /// What it was to be opened on.
        interface: Box<str>,
        /// The interfaces that there are.
        there: Vec<String>,
        /// What the system said.
        source: io::Error,
    },
    /// The interface is of another kind.
    #[error("{device}: interface `{interface}` is no Ethernet; `udp` works wherever IP does")]
    NotEthernet {
        /// The device.
        device: &'static str,
        /// The interface.
        interface: Box<str>,
    },
    /// Frames for addresses other than its own do not arrive at the interface.
    #[error(
        "{device}: to `{interface}`, of the kind {driver}, come only frames for its own address; \
         `packet:{interface}` uses that one"
    )]
    OwnOnly {
        /// The device.
        device: &'static str,
        /// The interface.
        interface: Box<str>,
        /// Its driver.
        driver: String,
    },
    /// The address is nobody's here, or stands for many.
    #[error(
        "{device}: {address} is no address of this machine's; `ip address` lists what there is: \
         {}{}",
        list(.there), brackets(*.address)
    )]
    NoAddress {
        /// The device.
        device: &'static str,
        /// The address.
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
        /// The device.
        device: &'static str,
        /// The wildcard.
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
        /// The device.
        device: &'static str,
        /// The host name.
        name: Box<str>,
        /// The addresses that the resolver has for it.
        found: Vec<IpAddr>,
        /// The addresses that this machine has.
        there: Vec<IpAddr>,
    },
    /// The name by which shared memory was to be joined can be none.
    #[error("{device}: `{}` can't be a name: {why}", .name.escape_debug())]
    Name {
        /// The device.
        device: &'static str,
        /// The name.
        name: Box<str>,
        /// What is wrong with it.
        why: String,
    },
    /// The interface is down.
    #[error("{device}: interface `{interface}` is down; `ip link set {interface} up` takes it up")]
    Down {
        /// The device.
        device: &'static str,
        /// The interface.
        interface: Box<str>,
    },
    /// The interface's MTU leaves no room for the smallest packets.
    #[error(
        "{device}: interface `{interface}` has an MTU of {mtu}, and {least} is the least that the \
         smallest packets fit; `ip link set {interface} mtu {least}` sets it"
    )]
    SmallMtu {
        /// The device.
        device: &'static str,
        /// The interface.
        interface: Box<str>,
        /// Its MTU.
        mtu: u32,
        /// The least that would do.
        least: u32,
    },
    /// The system does not let this process do it.
    #[error("{device}: {what} is not allowed; {advice}")]
    Privilege {
        /// The device.
        device: &'static str,
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The address or the name is taken.
    #[error("{device}: {what} is taken{}; {advice}", by_whom(.by))]
    Taken {
        /// The device.
        device: &'static str,
        /// The address or the name.
        what: String,
        /// The user and the process that have the address or the name, where that can be told.
        by: Option<Holder>,
        /// What the system said.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The system refused.
    #[error("{device} failed: {what}")]
    System {
        /// The device.
        device: &'static str,
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
}

/// Returns the part of an error that names the holder of an address or a name.
fn by_whom(holder: &Option<Holder>) -> String {
    holder.as_ref().map_or_else(String::new, |holder| format!(" by {holder}"))
}

/// What to say of an IPv6 address that no interface has.
fn brackets(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "",
        IpAddr::V6(_) => " (in front of a port, it goes in brackets, as in udp:[::1]:5000)",
    }
}

impl OpenError {
    /// An interface that could not be looked up.
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

    /// A raw socket on an interface that could not be opened.
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
