//! Memory of peers on the same machine that is mapped here: what is written there by its key needs no
//! packet.

use crate::encap::PathId;
use crate::memory::Region;
use crate::wire::{RemoteAddr, Rkey};

/// Memory that a NIC was [told](super::Nic::map) is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappingId(u64);

struct Mapping {
    id: MappingId,
    key: (u32, u32),
    base: u64,
    region: Region,
}

/// All that is mapped, in the order of links and keys.
#[derive(Default)]
pub(super) struct Mappings {
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

    /// Where the memory lies that a request names by a key of the peer's at the end of a link, if all
    /// of it is mapped.
    pub fn find(
        &self,
        link: PathId,
        rkey: Rkey,
        address: RemoteAddr,
        len: u32,
    ) -> Option<(&Region, usize)> {
        let key = (link.0, rkey.0);
        let first = self.list.partition_point(|mapping| mapping.key < key);
        let mapping = self.list.get(first).filter(|mapping| mapping.key == key)?;
        let start = address.0.checked_sub(mapping.base)?;
        let end = start.checked_add(len.into())?;
        (end <= mapping.region.len() as u64).then_some((&mapping.region, start as usize))
    }
}
