//! Memory: protection domains, registrations, and mapped memory.

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
    /// Makes a new protection domain.
    pub fn domain(&mut self) -> Domain {
        self.domains += 1;
        Domain(self.domains)
    }

    /// Registers memory, and returns its keys and its address.
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

    /// Removes a registration of memory: when this returns, no peer and no request reaches the
    /// memory by its keys any more. The region is an empty one where bytes were [lent](Self::lend).
    ///
    /// # Errors
    /// When there is no such registration.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        self.common.keys.deregister(lkey)
    }

    /// Gives a registration a new remote key, even after a peer has invalidated the old one, which
    /// is of no use any more.
    ///
    /// # Errors
    /// When there is no such registration.
    pub fn renew(&mut self, lkey: Lkey) -> Result<Rkey, KeyError> {
        self.common.keys.renew(&mut self.random, lkey)
    }

    /// Notes that memory of the peer at the end of a link is mapped here, to which the peer gave
    /// this key and address. From now on a plain write to it, by a reliable connection on that
    /// link, is carried out here: no packet is sent, and the peer's NIC is not asked. The write is
    /// complete when all requests before it are, and overtakes only sends. On a device that is not
    /// lossless this has no effect.
    pub fn map(&mut self, link: PathId, rkey: Rkey, base: RemoteAddr, region: Region) -> MappingId {
        self.common.mapped.add(link, rkey, base, region)
    }

    /// Ends a mapping, so that writes to the memory are sent again. Returns the memory, unless the
    /// mapping was ended before.
    pub fn unmap(&mut self, mapping: MappingId) -> Option<Region> {
        self.common.mapped.remove(mapping)
    }
}
