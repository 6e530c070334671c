//! The interface that a device is bound to.

use std::os::fd::BorrowedFd;

use doorbell_core::cipher::MOST_ADDED;
use doorbell_core::wire::PathMtu;

use crate::device::Trouble;
use crate::open::DeviceError;
use crate::sys::ethtool;
use crate::sys::interface::Interface;

/// The interface that a device is bound to.
pub struct BoundInterface {
    name: Box<str>,
    index: u32,
    /// The largest path MTU that fitted the interface when the device was opened.
    pub mtu: PathMtu,
    /// The largest path MTU whose encrypted packets fitted it.
    pub encrypted_mtu: PathMtu,
}

impl BoundInterface {
    /// Looks up an Ethernet interface that must be fit for a device.
    pub fn find(device: &'static str, name: &str) -> Result<(Self, Interface), DeviceError> {
        let (interface, found) = Self::of_any_kind(device, name)?;
        match found.ethernet {
            true => Ok((interface, found)),
            false => Err(DeviceError::NotEthernet { device, interface: interface.name }),
        }
    }

    /// Looks up an interface of any kind that must be fit for a device.
    pub fn of_any_kind(device: &'static str, name: &str) -> Result<(Self, Interface), DeviceError> {
        let found = Interface::named(name)
            .map_err(|source| DeviceError::interface(device, name, source))?;
        let interface: Box<str> = name.into();
        if !found.up {
            return Err(DeviceError::Down { device, interface });
        }
        let (mtu, least) = (found.mtu, PathMtu::LEAST_INTERFACE as u32);
        let left = (mtu as usize).saturating_sub(MOST_ADDED);
        // An interface for the shortest packets alone has no room for them when they are encrypted.
        let encrypted_mtu = PathMtu::fitting(left).unwrap_or(PathMtu::Mtu256);
        match PathMtu::fitting(mtu as usize) {
            Some(mtu) => {
                Ok((Self { name: interface, index: found.index, mtu, encrypted_mtu }, found))
            }
            None => Err(DeviceError::SmallMtu { device, interface, mtu, least }),
        }
    }

    /// Returns whether the interface cuts runs of UDP into packets by itself, as far as its driver
    /// tells.
    pub fn segments(&self) -> bool {
        ethtool::features(&self.name)
            .is_ok_and(|on| on.iter().any(|name| name == ethtool::SEGMENTATION))
    }

    /// Returns what is wrong with the interface at this moment, in the namespace of a socket on it.
    pub fn trouble(&self, socket: BorrowedFd<'_>) -> Option<Trouble> {
        let (found, advice) = match Interface::numbered(self.index, socket) {
            Err(why) => (why.to_string(), "open the device anew when it is there again"),
            Ok(now) if !now.up => (
                "it is down".to_owned(),
                "take it up (`ip link set <interface> up`); the device goes on",
            ),
            Ok(now) if PathMtu::fitting(now.mtu as usize) < Some(self.mtu) => (
                format!("its MTU is {}, too small for packets of {}", now.mtu, self.mtu.bytes()),
                "set its MTU to what it was (`ip link set <interface> mtu <bytes>`), and the \
                 device goes on; or open the device anew",
            ),
            Ok(_) => return None,
        };
        Some(Trouble { what: format!("interface {}", self.name), found, advice })
    }
}
