//! The addresses to which datagrams are sent.

use crate::encap::Path;
use crate::nic::identifiers::AddressId;

/// The addresses that a NIC keeps for datagrams.
pub(crate) struct Addresses {
    /// The NIC that keeps the addresses.
    nic: u32,
    /// For each place, how often it was used, and the address that is kept there.
    places: Vec<(u32, Option<Path>)>,
}

impl Addresses {
    pub fn new(nic: u32) -> Self {
        Self { nic, places: Vec::new() }
    }

    /// Keeps an address, unless there are `most` already.
    pub fn add(&mut self, path: Path, most: usize) -> Option<AddressId> {
        let free = self.places.iter().position(|(_, path)| path.is_none());
        let place = free.unwrap_or(self.places.len());
        if place == most {
            return None;
        }
        self.places.resize_with(self.places.len().max(place + 1), || (0, None));
        let (uses, found) = &mut self.places[place];
        (*uses, *found) = (uses.wrapping_add(1), Some(path));
        Some(AddressId { place: place as u32, uses: *uses, nic: self.nic })
    }

    pub fn get(&self, id: AddressId) -> Option<&Path> {
        let (uses, path) = self.places.get(id.place as usize).filter(|_| id.nic == self.nic)?;
        path.as_ref().filter(|_| *uses == id.uses)
    }

    pub fn remove(&mut self, id: AddressId) -> Option<Path> {
        self.get(id)?;
        self.places[id.place as usize].1.take()
    }

    pub fn len(&self) -> usize {
        self.places.iter().filter(|(_, path)| path.is_some()).count()
    }
}
