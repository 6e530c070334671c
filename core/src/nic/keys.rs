//! Protection: domains, registrations, and the keys that name them.
//!
//! A key is 32 bits: the low ones, as many as the table needs, say which entry, and the rest are
//! random. With a table of 4096 entries a guess is right once in a million, and a wrong one from a
//! peer costs it the queue pair. Addresses are random, too, and no two registrations share any.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use crate::memory::Region;
use crate::wire::{RemoteAddr, Rkey};

use super::random::Random;
use super::rights::Rights;
use super::work::Segment;
use crate::planted::{Bug, planted};

/// The key by which the program's own requests name registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lkey(pub u32);

/// A protection domain, whose keys are good only for queue pairs of the same domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Domain(pub(super) u32);

/// Why memory may not be used as a request wants to. The number is the request's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum KeyError {
    /// The key names no registration: it was never given, or was revoked.
    #[error("key {0:#010x} is unknown: never given, or revoked")]
    Unknown(u32),
    /// The key belongs to another protection domain than the queue pair.
    #[error("key {0:#010x} belongs to another protection domain than the queue pair")]
    Domain(u32),
    /// The request's bytes do not all lie within the memory that the key was given for.
    #[error("not all of the bytes lie within what key {0:#010x} was given for")]
    Bounds(u32),
    /// The registration does not grant the right that the request needs.
    #[error("key {0:#010x} was registered without the right for this")]
    Rights(u32),
}

/// The keys and the addresses by which registered memory is named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registration {
    /// The key for the program's own requests.
    pub lkey: Lkey,
    /// The key for peers, to be told to them with the address.
    pub rkey: Rkey,
    /// The address of the first byte, by both keys.
    pub address: RemoteAddr,
    /// How many bytes there are.
    pub len: u64,
}

impl Registration {
    /// A part of it, for the program's own requests. Whether it is one is found out there.
    #[inline]
    pub fn segment(&self, offset: u64, len: u32) -> Segment {
        Segment { address: self.address.0.wrapping_add(offset), len, lkey: self.lkey }
    }
}

/// Every entry of the table is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("all {0} registrations of this NIC are taken: deregister some, or configure more")]
pub struct TableFull(pub usize);

struct Entry {
    domain: Domain,
    rights: Rights,
    lkey: u32,
    /// The key for peers, or `None` after that key was taken back.
    rkey: Option<u32>,
    base: u64,
    region: Region,
}

/// Registrations by their keys.
pub(super) struct Keys {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Where each registration begins and ends, by the beginning.
    ranges: BTreeMap<u64, u64>,
    /// The bits of a key that say which entry.
    mask: u32,
}

/// Addresses have 47 bits, as user space has, and come in units of a page.
const ADDRESS_BITS: u32 = 47;
const PAGE: u64 = 4096;

impl Keys {
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
        let index = self.free.pop().ok_or(TableFull(self.entries.len()))?;
        let key = |random: &mut Random| random.u32() & !self.mask | index;
        let lkey = key(random);
        // The two are never the same, or a peer's key would do for the program's own requests.
        let rkey = key(random);
        let rkey = if rkey == lkey { rkey ^ 1 << 31 } else { rkey };
        let (len, base) = (region.len() as u64, self.unused_address(random, region.len() as u64));
        let entry = Entry { domain, rights, lkey, rkey: Some(rkey), base, region };
        self.entries[index as usize] = Some(entry);
        self.ranges.insert(base, base + len);
        Ok(Registration { lkey: Lkey(lkey), rkey: Rkey(rkey), address: RemoteAddr(base), len })
    }

    /// A random place that no registration has. There is room: the table holds 2²⁰ at most.
    fn unused_address(&self, random: &mut Random, len: u64) -> u64 {
        loop {
            let base = random.u64() >> (64 - ADDRESS_BITS) & !(PAGE - 1);
            let end = base.saturating_add(len);
            // No two of the ranges overlap, so the last that begins before the end is the one to
            // look at.
            let before = self.ranges.range(..=end).next_back();
            if base >= PAGE && before.is_none_or(|(_, &other)| other <= base) {
                return base;
            }
        }
    }

    /// Takes a registration back. From now on no peer, and no request, reaches the memory by it.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        let slot = &mut self.entries[(lkey.0 & self.mask) as usize];
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

    /// Whether a peer may take a remote key back.
    #[inline(never)]
    pub fn may_invalidate(&self, domain: Domain, rkey: Rkey) -> Result<(), KeyError> {
        self.remote(domain, rkey, Rights::REMOTE_INVALIDATE, self.entry(rkey.0)?.base(), 0)
            .map(|_| ())
    }

    /// Takes a remote key back. The memory stays registered for the program's own requests.
    pub fn invalidate(&mut self, rkey: Rkey) {
        let entry = self.entries[(rkey.0 & self.mask) as usize].as_mut();
        if let Some(entry) = entry.filter(|entry| entry.rkey == Some(rkey.0))
            && !planted(Bug::KeepsInvalidated)
        {
            entry.rkey = None;
        }
    }

    /// Gives a registration a new remote key; the old one, if there is one, is of no use any more.
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

    #[inline]
    fn entry(&self, key: u32) -> Result<&Entry, KeyError> {
        self.entries[(key & self.mask) as usize].as_ref().ok_or(KeyError::Unknown(key))
    }

    /// The memory of a segment, and where in it the segment begins, for the program's own requests.
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

    /// The memory that a peer names, and where in it the range begins.
    #[inline]
    pub fn remote(
        &self,
        domain: Domain,
        rkey: Rkey,
        needed: Rights,
        address: RemoteAddr,
        len: u64,
    ) -> Result<(&Region, usize), KeyError> {
        let entry = self.entry(rkey.0)?;
        if entry.rkey != Some(rkey.0) && !planted(Bug::ComparesNoKeys) {
            return Err(KeyError::Unknown(rkey.0));
        }
        entry.check(rkey.0, domain, needed, address.0, len)
    }
}

impl Entry {
    fn base(&self) -> RemoteAddr {
        RemoteAddr(self.base)
    }

    #[inline]
    fn check(
        &self,
        key: u32,
        domain: Domain,
        needed: Rights,
        address: u64,
        len: u64,
    ) -> Result<(&Region, usize), KeyError> {
        if self.domain != domain && !planted(Bug::IgnoresDomains) {
            return Err(KeyError::Domain(key));
        }
        if !self.rights.include(needed) {
            return Err(KeyError::Rights(key));
        }
        let offset = address.checked_sub(self.base).ok_or(KeyError::Bounds(key))?;
        let len = len - u64::from(len > 0 && planted(Bug::OffByOneBounds));
        match offset.checked_add(len) {
            Some(end) if end <= self.region.len() as u64 => Ok((&self.region, offset as usize)),
            _ => Err(KeyError::Bounds(key)),
        }
    }
}

impl fmt::Debug for Lkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lkey({:#010x})", self.0)
    }
}
