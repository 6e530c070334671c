//! Registered memory, and what it must hold.
//!
//! Each region has a copy. What peers write to a region, if they may, is written to the copy, too.
//! So the two must be alike, but where receives and reads may put something at present.

use std::ops::Range;

use doorbell_core::memory::Region;
use doorbell_core::nic::{Domain, Lkey, Nic, Registration, Rights, Segment};
use doorbell_core::wire::{AtomicEth, Opcode, RemoteAddr, Rkey};

use super::super::input::Input;

/// The bytes of each region: not a multiple of eight, so that the last word is not whole.
pub const LEN: usize = 1020;

/// The most regions that are registered one after the other, of which peers may access one fully at
/// a time.
const MOST: usize = 12;

/// The indices of the regions that stay registered.
const RECEIVES: usize = 1;
const READABLE: usize = 2;
const FOREIGN: usize = 3;
const WORDS: usize = 4;

/// A region, with its keys and the bytes that it must hold.
struct Known {
    region: Region,
    registration: Registration,
    domain: Domain,
    rights: Rights,
    /// Whether the region is registered.
    there: bool,
    /// Whether the remote key is valid.
    named: bool,
    /// The bytes that the region must hold.
    holds: Vec<u8>,
    /// The ranges that outstanding requests may fill, each with the request's number.
    lent: Vec<(u64, Range<usize>)>,
}

/// The value of a word before an atomic operation.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    Known(u64),
    /// A request of the program's may have put anything there meanwhile.
    Unknown,
}

pub struct Memory {
    known: Vec<Known>,
    /// The index of the region to which peers have all rights at present.
    open: usize,
    /// Remote keys that were valid once.
    stale: Vec<Rkey>,
}

impl Memory {
    pub fn new(nic: &mut Nic, ours: Domain, other: Domain) -> Self {
        let mut memory = Self { known: Vec::new(), open: 0, stale: vec![Rkey(0)] };
        let everything = Rights::LOCAL_WRITE | Rights::REMOTE;
        memory.register(nic, ours, everything);
        memory.register(nic, ours, Rights::LOCAL_WRITE);
        memory.register(nic, ours, Rights::REMOTE_READ);
        memory.register(nic, other, everything);
        memory.register(nic, ours, Rights::REMOTE_ATOMIC);
        memory
    }

    fn register(&mut self, nic: &mut Nic, domain: Domain, rights: Rights) {
        let holds: Vec<u8> = (0..LEN).map(|i| (i * 7 + self.known.len() * 31) as u8).collect();
        let region = Region::from_bytes(&holds);
        let registration = nic.register(domain, region.clone(), rights).expect("there is room");
        let (there, named, lent) = (true, true, Vec::new());
        let known = Known { region, registration, domain, rights, there, named, holds, lent };
        self.known.push(known);
    }

    /// Deregisters the region that peers may access fully, and registers another. The old region
    /// must keep what it holds.
    pub fn revoke(&mut self, nic: &mut Nic) {
        if self.known.len() >= MOST {
            return;
        }
        let open = &mut self.known[self.open];
        nic.deregister(open.registration.lkey).expect("it was registered");
        (open.there, open.holds) = (false, open.bytes().to_vec());
        open.lent.clear();
        self.stale.push(open.registration.rkey);
        let domain = open.domain;
        self.open = self.known.len();
        self.register(nic, domain, Rights::LOCAL_WRITE | Rights::REMOTE);
    }

    /// Gives a region another remote key.
    pub fn renew(&mut self, nic: &mut Nic, index: usize) {
        let index = index % self.known.len();
        let known = &mut self.known[index];
        let renewed = nic.renew(known.registration.lkey);
        assert_eq!(renewed.is_ok(), known.there, "what is registered can be renewed");
        if let Ok(rkey) = renewed {
            self.stale.push(std::mem::replace(&mut known.registration.rkey, rkey));
            known.named = true;
        }
    }

    /// Gives new remote keys to the regions whose keys peers have invalidated.
    pub fn renew_taken_back(&mut self, nic: &mut Nic) {
        for index in 0..self.known.len() {
            if self.known[index].there && !self.known[index].named {
                self.renew(nic, index);
            }
        }
    }

    /// Asserts that each region holds what it must.
    pub fn check(&self) {
        for (index, known) in self.known.iter().enumerate() {
            let now = known.bytes();
            if now[..] == known.holds[..] {
                continue;
            }
            for (at, (is, was)) in now.iter().zip(&known.holds).enumerate() {
                let lent = known.lent.iter().any(|(_, range)| range.contains(&at));
                assert!(is == was || lent, "byte {at} of region {index} was written");
            }
        }
    }

    /// The index of a region and the offset that a remote key and address name, if a peer may
    /// access all of the range.
    fn find(
        &self,
        domain: Domain,
        rights: Rights,
        (rkey, address): (Rkey, RemoteAddr),
        len: usize,
    ) -> Option<(usize, usize)> {
        let named = |known: &Known| known.named && known.registration.rkey == rkey;
        let index = self.known.iter().position(|known| known.there && named(known))?;
        let known = &self.known[index];
        let start = address.0.checked_sub(known.registration.address.0)?;
        let end = start.checked_add(len as u64)?;
        let allowed = known.domain == domain && known.rights.include(rights);
        (allowed && end <= LEN as u64).then_some((index, start as usize))
    }

    /// Returns whether a peer with these rights may access a range.
    pub fn allows(
        &self,
        domain: Domain,
        rights: Rights,
        place: (Rkey, RemoteAddr),
        len: usize,
    ) -> bool {
        self.find(domain, rights, place, len).is_some()
    }

    /// Notes that a peer has written to a range.
    pub fn write(&mut self, domain: Domain, place: (Rkey, RemoteAddr), payload: &[u8]) {
        let found = self.find(domain, Rights::REMOTE_WRITE, place, payload.len());
        let (index, start) = found.expect("a write that somebody allowed");
        self.known[index].holds[start..start + payload.len()].copy_from_slice(payload);
    }

    /// The present value of a word, if a peer may do atomic operations on it.
    pub fn word(&self, domain: Domain, place: (Rkey, RemoteAddr)) -> Option<u64> {
        let (index, start) = self.find(domain, Rights::REMOTE_ATOMIC, place, 8)?;
        self.known[index].region.load(start).ok()
    }

    /// The value that a word must have by what peers have done, if a peer may do atomic operations
    /// on it.
    pub fn supposed_word(&self, domain: Domain, place: (Rkey, RemoteAddr)) -> Option<Word> {
        let (index, start) = self.find(domain, Rights::REMOTE_ATOMIC, place, 8)?;
        let known = &self.known[index];
        let touches = |range: &Range<usize>| range.start < start + 8 && start < range.end;
        if known.lent.iter().any(|(_, range)| touches(range)) {
            return Some(Word::Unknown);
        }
        let bytes = known.holds[start..start + 8].try_into().expect("eight bytes");
        Some(Word::Known(u64::from_le_bytes(bytes)))
    }

    /// Notes that a peer's atomic operation has changed the word that held `before`. `is_last` says
    /// whether nothing can have changed the word since.
    pub fn replace(
        &mut self,
        domain: Domain,
        opcode: Opcode,
        atomic: AtomicEth,
        before: Word,
        is_last: bool,
    ) {
        let place = (atomic.rkey, atomic.address);
        let found = self.find(domain, Rights::REMOTE_ATOMIC, place, 8);
        let (index, start) = found.expect("an atomic operation that somebody allowed");
        let known = &mut self.known[index];
        let now = known.region.load(start).expect("a whole word");
        let after = match before {
            Word::Unknown => now,
            Word::Known(before) => match opcode {
                Opcode::RcFetchAdd => before.wrapping_add(atomic.swap_or_add.0),
                _ if before == atomic.compare.0 => atomic.swap_or_add.0,
                _ => before,
            },
        };
        known.holds[start..start + 8].copy_from_slice(&after.to_le_bytes());
        assert!(!is_last || now == after, "the word after an atomic operation: {now}, not {after}");
    }

    /// The bytes that a peer reads in a range at present, if it may.
    pub fn read(&self, domain: Domain, place: (Rkey, RemoteAddr), len: usize) -> Option<Vec<u8>> {
        let (index, start) = self.find(domain, Rights::REMOTE_READ, place, len)?;
        let mut bytes = vec![0; len];
        self.known[index].region.read_at(start, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Notes that a peer has invalidated a remote key.
    pub fn invalidate(&mut self, domain: Domain, rkey: Rkey) {
        let named = |known: &&mut Known| known.there && known.registration.rkey == rkey;
        let known = self.known.iter_mut().find(named).expect("a key that there is");
        assert!(known.named && known.domain == domain, "a key that was another's, or none");
        known.named = false;
    }

    /// Notes the ranges that a request may fill. A request without the right to fill all of them
    /// fills none.
    pub fn lend(&mut self, id: u64, domain: Domain, segments: &[Segment]) {
        let place = |known: &[Known], segment: &Segment| {
            let named = |known: &Known| known.there && known.registration.lkey == segment.lkey;
            let index = known.iter().position(named)?;
            let known = &known[index];
            let start = segment.address.checked_sub(known.registration.address.0)?;
            let end = start.checked_add(segment.len.into())?;
            let allowed = known.domain == domain && known.rights.include(Rights::LOCAL_WRITE);
            (allowed && end <= LEN as u64).then_some((index, start as usize..end as usize))
        };
        let places = segments.iter().map(|segment| place(&self.known, segment));
        // A single segment that may not be used keeps the whole request from being carried out.
        let Some(places) = places.collect::<Option<Vec<_>>>() else { return };
        for (index, range) in places {
            self.known[index].lent.push((id, range));
        }
    }

    /// Notes that a request has completed: its ranges must keep what they hold now.
    pub fn take_back(&mut self, id: u64) {
        for known in &mut self.known {
            let now = known.bytes();
            known.lent.retain(|(other, range)| {
                if *other == id {
                    known.holds[range.clone()].copy_from_slice(&now[range.clone()]);
                }
                *other != id
            });
        }
    }
}

/// The keys and ranges that requests of programs and packets of peers name.
impl Memory {
    /// The region to which peers have all rights at present.
    pub fn open(&self) -> Registration {
        self.known[self.open].registration
    }

    /// The region that peers may only read.
    pub fn readable(&self) -> Registration {
        self.known[READABLE].registration
    }

    pub fn words(&self) -> Registration {
        self.known[WORDS].registration
    }

    /// Any region that was ever registered.
    pub fn any(&self, input: &mut Input<'_>) -> Registration {
        self.known[usize::from(input.u8()) % self.known.len()].registration
    }

    /// The word at an address, if a region has it.
    pub fn look(&self, address: RemoteAddr) -> Option<u64> {
        let offset = |known: &Known| address.0.checked_sub(known.registration.address.0);
        let within = |known: &&Known| offset(known).is_some_and(|offset| offset < LEN as u64);
        let known = self.known.iter().find(within)?;
        known.region.load(offset(known)? as usize).ok()
    }

    /// A remote key that was valid once.
    pub fn stale(&self, input: &mut Input<'_>) -> Rkey {
        input.choose(&self.stale)
    }

    /// A range of a region that sends may read.
    pub fn to_send(&self, input: &mut Input<'_>, len: u32) -> Segment {
        let known = if input.u8() < 16 { self.any(input) } else { self.readable() };
        let most = (LEN as u64).saturating_sub(len.into()) + 4;
        known.segment(u64::from(input.u16()) % most, len)
    }

    /// A range of a region that receives and reads may fill; now and then one without the right, or
    /// with a wrong key.
    pub fn to_fill(&self, input: &mut Input<'_>, domain: Domain) -> Segment {
        let own = if domain == self.known[FOREIGN].domain { FOREIGN } else { RECEIVES };
        let index = if input.u8() < 16 { usize::from(input.u8()) } else { own };
        let known = &self.known[index % self.known.len()];
        let at = usize::from(input.u16()) % LEN;
        let len = usize::from(input.u16()) % (LEN - at + 1);
        let segment = known.registration.segment(at as u64, len as u32);
        let wrong = if input.u8() < 8 { 1 << (input.u8() & 31) } else { 0 };
        Segment { lkey: Lkey(segment.lkey.0 ^ wrong), ..segment }
    }

    /// The number of regions that are registered.
    pub fn registered(&self) -> usize {
        self.known.iter().filter(|known| known.there).count()
    }
}

impl Known {
    fn bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        self.region.read_at(0, &mut bytes).expect("it is as long as that");
        bytes
    }
}
