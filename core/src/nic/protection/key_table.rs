//! The table of memory keys: registrations by their local and remote keys.
//!
//! A key has 32 bits: the low ones, as many as the table needs, say which entry, and the rest are
//! random. With a table of 4096 entries a guess is right once in a million, and a wrong guess of a
//! peer's breaks its queue pair. Addresses are random, too, and no two registrations overlap.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::common::random::Random;
use crate::memory::Region;
use crate::nic::protection::registration::{KeyError, Registration, TableFull};
use crate::nic::protection::rights::Rights;
use crate::nic::protection::segment::{Domain, Lkey, Segment};
use crate::planted::{Bug, planted};
use crate::wire::{RemoteAddr, Rkey};

/// A registration in the table.
struct KeyTableEntry {
    domain: Domain,
    rights: Rights,
    lkey: u32,
    /// The key for peers, or `None` after that key was invalidated.
    rkey: Option<u32>,
    base: u64,
    /// The registered memory. It is empty if bytes were lent instead: whatever writes, or does not
    /// know of lent bytes, then finds that nothing lies within bounds.
    region: Region,
    /// Bytes that peers may read and nobody may write.
    lent: Option<Bytes>,
}

/// The table of a NIC's registrations, by their keys.
pub(crate) struct KeyTable {
    entries: Vec<Option<KeyTableEntry>>,
    free: Vec<u32>,
    /// Where each registration's addresses begin and end, by the beginning.
    ranges: BTreeMap<u64, u64>,
    /// A mask of the bits of a key that say which entry.
    mask: u32,
}

/// How many bits an address has, as many as in user space.
const ADDRESS_BITS: u32 = 47;

/// The unit in which addresses are given out.
const PAGE: u64 = 4096;

impl KeyTable {
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 20).next_power_of_two();
        Self {
            entries: (0..capacity).map(|_| None).collect(),
            free: (0..capacity as u32).rev().collect(),
            ranges: BTreeMap::new(),
            mask: capacity as u32 - 1,
        }
    }

    pub fn register(
        &mut self,
        random: &mut Random,
        domain: Domain,
        region: Region,
        rights: Rights,
    ) -> Result<Registration, TableFull> {
        let len = region.len() as u64;
        self.enter(random, len, |[lkey, rkey], base| KeyTableEntry {
            domain,
            rights,
            lkey,
            rkey: Some(rkey),
            base,
            region,
            lent: None,
        })
    }

    /// Registers immutable bytes, which peers may read and do nothing else with.
    pub fn lend(
        &mut self,
        random: &mut Random,
        domain: Domain,
        bytes: Bytes,
    ) -> Result<Registration, TableFull> {
        let (len, rights, region) = (bytes.len() as u64, Rights::REMOTE_READ, Region::new(0));
        self.enter(random, len, |[lkey, rkey], base| KeyTableEntry {
            domain,
            rights,
            lkey,
            rkey: Some(rkey),
            base,
            region,
            lent: Some(bytes),
        })
    }

    /// Enters a registration of `len` bytes, which `make` makes of its two keys and its address.
    fn enter(
        &mut self,
        random: &mut Random,
        len: u64,
        make: impl FnOnce([u32; 2], u64) -> KeyTableEntry,
    ) -> Result<Registration, TableFull> {
        let index = self.free.pop().ok_or(TableFull(self.entries.len()))?;
        let key = |random: &mut Random| random.u32() & !self.mask | index;
        let lkey = key(random);
        // The two keys must differ, or a peer's key would do for the program's own requests.
        let rkey = key(random);
        let rkey = if rkey == lkey { rkey ^ 1 << 31 } else { rkey };
        let base = self.unused_address(random, len);
        self.entries[index as usize] = Some(make([lkey, rkey], base));
        self.ranges.insert(base, base + len);
        Ok(Registration { lkey: Lkey(lkey), rkey: Rkey(rkey), address: RemoteAddr(base), len })
    }

    /// Returns a random range of addresses that no registration has. There is room, since the table
    /// holds at most 2²⁰ entries.
    fn unused_address(&self, random: &mut Random, len: u64) -> u64 {
        loop {
            let base = random.u64() >> (64 - ADDRESS_BITS) & !(PAGE - 1);
            let end = base.saturating_add(len);
            // No two of the ranges overlap, so only the last that begins before the end can overlap
            // with this one.
            let before = self.ranges.range(..=end).next_back();
            if base >= PAGE && before.is_none_or(|(_, &other)| other <= base) {
                return base;
            }
        }
    }

    /// Removes a registration from the table. From now on no peer and no request reaches the memory
    /// by it. If bytes were lent, they are dropped, and an empty region is returned.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        let slot = &mut self.entries[(lkey.0 & self.mask) as usize];
        if let Some(entry) = slot.as_ref().filter(|_| planted(Bug::KeepsRevoked)) {
            return Ok(entry.region.clone());
        }
        match slot.take_if(|entry| entry.lkey == lkey.0) {
            Some(entry) => {
                self.free.push(lkey.0 & self.mask);
                self.ranges.remove(&entry.base);
                Ok(entry.region)
            }
            None => Err(KeyError::Unknown(lkey.0)),
        }
    }

    /// How many registrations there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Checks whether a peer may invalidate a remote key.
    #[inline(never)]
    pub fn may_invalidate(&self, domain: Domain, rkey: Rkey) -> Result<(), KeyError> {
        self.remote(domain, rkey, Rights::REMOTE_INVALIDATE, self.entry(rkey.0)?.base(), 0)
            .map(|_| ())
    }

    /// Invalidates a remote key. The memory stays registered for the program's own requests.
    pub fn invalidate(&mut self, rkey: Rkey) {
        let entry = self.entries[(rkey.0 & self.mask) as usize].as_mut();
        if let Some(entry) = entry.filter(|entry| entry.rkey == Some(rkey.0))
            && !planted(Bug::KeepsInvalidated)
        {
            entry.rkey = None;
        }
    }

    /// Gives a registration a new remote key. The old one, if there is one, is invalid from now on.
    pub fn renew(&mut self, random: &mut Random, lkey: Lkey) -> Result<Rkey, KeyError> {
        let (mask, index) = (self.mask, lkey.0 & self.mask);
        let entry = self.entries[index as usize].as_mut().filter(|entry| entry.lkey == lkey.0);
        let entry = entry.ok_or(KeyError::Unknown(lkey.0))?;
        let rkey = loop {
            let key = random.u32() & !mask | index;
            if key != lkey.0 && Some(key) != entry.rkey {
                break key;
            }
        };
        entry.rkey = Some(rkey);
        Ok(Rkey(rkey))
    }

    /// Returns the entry that a key's low bits point to, whose key may be another.
    #[inline]
    fn entry(&self, key: u32) -> Result<&KeyTableEntry, KeyError> {
        self.entries[(key & self.mask) as usize].as_ref().ok_or(KeyError::Unknown(key))
    }

    /// Returns the memory of a segment of the program's own requests, and where in it the segment
    /// begins.
    #[inline]
    pub fn local(
        &self,
        domain: Domain,
        segment: &Segment,
        needed: Rights,
    ) -> Result<(&Region, usize), KeyError> {
        let key = segment.lkey.0;
        let entry = self.entry(key)?;
        if entry.lkey != key && !planted(Bug::ComparesNoKeys) {
            return Err(KeyError::Unknown(key));
        }
        entry.check(key, domain, needed, segment.address, u64::from(segment.len))
    }

    /// Returns the memory that a peer names, and where in it the range begins.
    #[inline]
    pub fn remote(
        &self,
        domain: Domain,
        rkey: Rkey,
        needed: Rights,
        address: RemoteAddr,
        len: u64,
    ) -> Result<(&Region, usize), KeyError> {
        self.by_rkey(rkey)?.check(rkey.0, domain, needed, address.0, len)
    }

    /// Returns the bytes that a peer wants to read, if they were lent.
    ///
    /// A key names a region far more often. So a read first looks for a [region](Self::remote), and
    /// for lent bytes only when nothing of a region lies there.
    #[cold]
    pub fn lent(
        &self,
        domain: Domain,
        rkey: Rkey,
        address: RemoteAddr,
        len: u64,
    ) -> Result<&[u8], KeyError> {
        let entry = self.by_rkey(rkey)?;
        let bytes = entry.lent.as_deref().unwrap_or(&[]);
        let needed = Rights::REMOTE_READ;
        let start = entry.place(rkey.0, domain, needed, (address.0, len), bytes.len())?;
        Ok(&bytes[start..start + len as usize])
    }

    /// Returns the registration that a remote key names.
    #[inline]
    fn by_rkey(&self, rkey: Rkey) -> Result<&KeyTableEntry, KeyError> {
        let entry = self.entry(rkey.0)?;
        if entry.rkey != Some(rkey.0) && !planted(Bug::ComparesNoKeys) {
            return Err(KeyError::Unknown(rkey.0));
        }
        Ok(entry)
    }
}

impl KeyTableEntry {
    fn base(&self) -> RemoteAddr {
        RemoteAddr(self.base)
    }

    /// Returns the region and where a range begins in it, if the range lies within the region and
    /// may be used.
    #[inline]
    fn check(
        &self,
        key: u32,
        domain: Domain,
        needed: Rights,
        address: u64,
        len: u64,
    ) -> Result<(&Region, usize), KeyError> {
        let start = self.place(key, domain, needed, (address, len), self.region.len())?;
        Ok((&self.region, start))
    }

    /// Returns where a range begins in memory of `room` bytes, if the range lies within and may be
    /// used.
    #[inline]
    fn place(
        &self,
        key: u32,
        domain: Domain,
        needed: Rights,
        (address, len): (u64, u64),
        room: usize,
    ) -> Result<usize, KeyError> {
        if self.domain != domain && !planted(Bug::IgnoresDomains) {
            return Err(KeyError::Domain(key));
        }
        if !self.rights.include(needed) {
            return Err(KeyError::Rights(key));
        }
        let offset = address.checked_sub(self.base).ok_or(KeyError::Bounds(key))?;
        let len = len - u64::from(len > 0 && planted(Bug::OffByOneBounds));
        match offset.checked_add(len) {
            Some(end) if end <= room as u64 => Ok(offset as usize),
            _ => Err(KeyError::Bounds(key)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::common::random::Seed;

    /// Everything that can be done with bytes that are lent: so a judge of memory accesses such as
    /// Miri sees that they are only ever read, and as bytes. Regression test for a bug: they were
    /// read as atomic words, which takes memory that may be written.
    #[test]
    fn bytes_that_are_lent_are_read_by_peers_and_by_nobody_else_and_never_written() {
        let mut random = Random::new(Seed::from_number(1));
        let (mut keys, own, other) = (KeyTable::new(4), Domain(1), Domain(2));
        let bytes = Bytes::from(b"unaligned, and of no whole words".to_vec()).slice(3..);
        let lent = keys.lend(&mut random, own, bytes.clone()).expect("room");
        let (rkey, address, len) = (lent.rkey, lent.address, bytes.len() as u64);
        assert_eq!(lent.len, len);
        let at = |offset: u64| RemoteAddr(address.0.wrapping_add(offset));
        for (offset, count) in [(0, len), (0, 1), (5, 8), (len - 1, 1), (len, 0)] {
            let found = keys.lent(own, rkey, at(offset), count).expect("within");
            assert_eq!(found, &bytes[offset as usize..][..count as usize]);
        }
        let number = rkey.0;
        let refused = |domain, rkey, offset, count| {
            keys.lent(domain, rkey, at(offset), count).expect_err("it may not be read")
        };
        assert_eq!(refused(own, rkey, 1, len), KeyError::Bounds(number));
        assert_eq!(refused(own, rkey, u64::MAX, 2), KeyError::Bounds(number));
        assert_eq!(refused(other, rkey, 0, 1), KeyError::Domain(number));
        let guessed = number ^ 1 << 31;
        assert_eq!(refused(own, Rkey(guessed), 0, 1), KeyError::Unknown(guessed));
        for needed in [Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC, Rights::REMOTE_INVALIDATE] {
            let found = keys.remote(own, rkey, needed, address, 8);
            assert_eq!(found.err(), Some(KeyError::Rights(number)));
        }
        let segment = lent.segment(0, 8);
        assert!(keys.local(own, &segment, Rights::LOCAL_WRITE).is_err());
        assert!(keys.local(own, &segment, Rights::NONE).is_err(), "requests name regions alone");

        let renewed = keys.renew(&mut random, lent.lkey).expect("it is registered");
        assert!(keys.lent(own, rkey, address, 1).is_err());
        assert!(keys.lent(own, renewed, address, 1).is_ok());
        assert_eq!(keys.deregister(lent.lkey).map(|region| region.len()), Ok(0));
        assert_eq!(keys.lent(own, renewed, address, 1), Err(KeyError::Unknown(renewed.0)));
        assert!(bytes.is_unique(), "what was lent is let go of");
    }

    #[test]
    fn a_registered_region_does_not_pass_for_lent_bytes() {
        let mut random = Random::new(Seed::from_number(1));
        let (mut keys, domain) = (KeyTable::new(4), Domain(1));
        let of = keys.register(&mut random, domain, Region::new(64), Rights::REMOTE).expect("room");
        let Registration { rkey, address, .. } = of;
        assert_eq!(keys.lent(domain, rkey, address, 1), Err(KeyError::Bounds(rkey.0)));
    }
}
