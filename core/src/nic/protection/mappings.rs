//! Mapped memory: memory of peers on the same machine that is mapped here, so that a write to it
//! needs no packet.

use crate::encap::PathId;
use crate::memory::Region;
use crate::nic::identifiers::MappingId;
use crate::wire::{RemoteAddr, Rkey};

/// Memory of a peer's that is mapped here.
pub(crate) struct Mapping {
    id: MappingId,
    /// The link to the peer, and the peer's remote key.
    key: (u32, u32),
    base: u64,
    region: Region,
}

/// The memory that is mapped, in the order of links and keys.
#[derive(Default)]
pub(crate) struct Mappings {
    list: Vec<Mapping>,
    last: u64,
}

impl Mappings {
    pub fn add(&mut self, link: PathId, rkey: Rkey, base: RemoteAddr, region: Region) -> MappingId {
        self.last += 1;
        let (id, key) = (MappingId(self.last), (link.0, rkey.0));
        let place = self.list.partition_point(|mapping| mapping.key < key);
        self.list.insert(place, Mapping { id, key, base: base.0, region });
        id
    }

    pub fn remove(&mut self, id: MappingId) -> Option<Region> {
        let place = self.list.iter().position(|mapping| mapping.id == id)?;
        Some(self.list.remove(place).region)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the memory that a remote key of the peer's at the end of a link names, if it is
    /// mapped.
    #[inline]
    pub fn find(&self, link: PathId, rkey: Rkey) -> Option<&Mapping> {
        let key = (link.0, rkey.0);
        let first = self.list.partition_point(|mapping| mapping.key < key);
        self.list.get(first).filter(|mapping| mapping.key == key)
    }
}

impl Mapping {
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Returns where in the region `len` bytes at an address begin, if all of them are mapped.
    #[inline(always)]
    pub fn place(&self, address: RemoteAddr, len: u32) -> Option<usize> {
        let start = address.0.checked_sub(self.base)?;
        let end = start.checked_add(len.into())?;
        (end <= self.region.len() as u64).then_some(start as usize)
    }
}
