//! Addresses for datagrams, and management datagrams.

use crate::encap::Path;
use crate::nic::adapter::nic::Nic;
use crate::nic::config::errors::ResourceError;
use crate::nic::identifiers::AddressId;
use crate::nic::state::common::Common;
use crate::nic::state::management::{Management, TooMany};
use crate::wire::cm::Mad;

impl Nic {
    /// Keeps an address for datagrams: the path there.
    ///
    /// # Errors
    /// When as many addresses are kept as configured.
    pub fn address(&mut self, path: Path) -> Result<AddressId, ResourceError> {
        let Common { addresses, most_addresses, .. } = &mut self.common;
        addresses.add(path, *most_addresses).ok_or(ResourceError::AddressesFull(*most_addresses))
    }

    /// Drops an address that was kept for datagrams. Datagrams that are still to be sent there
    /// break their queue pair.
    ///
    /// # Errors
    /// When no such address is kept.
    pub fn drop_address(&mut self, address: AddressId) -> Result<(), ResourceError> {
        self.common.addresses.remove(address).map(drop).ok_or(ResourceError::NoSuchAddress(address))
    }

    /// Whether a management datagram came to queue pair 1.
    #[inline]
    pub fn has_management(&self) -> bool {
        self.common.management.has_arrived()
    }

    /// The next management datagram that came to queue pair 1.
    pub fn management(&mut self) -> Option<Management> {
        self.common.management.arrived()
    }

    /// Sends a management datagram to the queue pair 1 at the end of a path, in the next turn.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn manage(&mut self, path: Path, datagram: [u8; Mad::LEN]) -> Result<(), TooMany> {
        self.common.management.send(path, datagram)
    }
}
