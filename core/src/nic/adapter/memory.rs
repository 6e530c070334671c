//! Protection domains, registrations, and mapped memory.

use bytes::Bytes;

use crate::encap::PathId;
use crate::memory::Region;
use crate::nic::adapter::nic::Nic;
use crate::nic::identifiers::MappingId;
use crate::nic::protection::registration::{KeyError, Registration, TableFull};
use crate::nic::protection::rights::Rights;
use crate::nic::protection::segment::{Domain, Lkey};
use crate::wire::{RemoteAddr, Rkey};

impl Nic {
    /// A new protection domain.
    pub fn domain(&mut self) -> Domain {
        self.domains += 1;
        Domain(self.domains)
    }

    /// Registers memory, and gives its keys and its address.
    ///
    /// # Errors
    /// When the table is full.
    pub fn register(
        &mut self,
        domain: Domain,
        region: Region,
        rights: Rights,
    ) -> Result<Registration, TableFull> {
        self.common.keys.register(&mut self.random, domain, region, rights)
    }

    /// Registers immutable bytes, which peers may read and do nothing else with. The local key is
    /// good for [taking them back](Self::deregister), and names nothing in requests.
    ///
    /// # Errors
    /// When the table is full.
    pub fn lend(&mut self, domain: Domain, bytes: Bytes) -> Result<Registration, TableFull> {
        self.common.keys.lend(&mut self.random, domain, bytes)
    }

    /// Takes a registration back: when this returns, no peer and no request reaches the memory by
    /// its keys any more. The region is an empty one where bytes were [lent](Self::lend).
    ///
    /// # Errors
    /// When there is none.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        self.common.keys.deregister(lkey)
    }

    /// Gives a registration a new remote key, also after a peer has taken the old one back; that is
    /// of no use any more.
    ///
    /// # Errors
    /// When there is no such registration.
    pub fn renew(&mut self, lkey: Lkey) -> Result<Rkey, KeyError> {
        self.common.keys.renew(&mut self.random, lkey)
    }

    /// Says that memory of a peer's is mapped here, which is at the end of a link and gave it this
    /// key and address. From now on a plain write there, by a reliable connection on that link, is
    /// carried out here: no packet is sent, and the peer's NIC is not asked. It is complete when
    /// all before it is, and overtakes nothing of it but sends. On a device that may lose packets
    /// this has no effect.
    pub fn map(&mut self, link: PathId, rkey: Rkey, base: RemoteAddr, region: Region) -> MappingId {
        self.common.mapped.add(link, rkey, base, region)
    }

    /// Takes that back: what is written there is sent again. The memory, if it was not before.
    pub fn unmap(&mut self, mapping: MappingId) -> Option<Region> {
        self.common.mapped.remove(mapping)
    }
}
