//! What can be wrong with opening a device.

use std::io;
use std::net::IpAddr;

use thiserror::Error;

/// A device that can't be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no such interface.
    #[error("{device}: no interface `{interface}`; `ip link` lists what there is")]
    NoInterface {
        /// The device.
        device: &'static str,
        /// What it was to be opened on.
        interface: Box<str>,
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
        "{device}: {address} is no address of this machine's; `ip address` lists what there is"
    )]
    NoAddress {
        /// The device.
        device: &'static str,
        /// The address.
        address: IpAddr,
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
    #[error("{device}: {what} is taken; {advice}")]
    Taken {
        /// The device.
        device: &'static str,
        /// The address or the name.
        what: String,
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

impl OpenError {
    /// An interface that could not be looked up.
    pub(crate) fn interface(device: &'static str, interface: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                Self::NoInterface { device, interface: interface.into(), source }
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
