//! Registered memory, and beside it what its bytes must be.

use doorbell::memory::Region;
use doorbell::nic::{Domain, Lkey, Memory, Nic, Registration, Rights, Segment};

use super::dice::{self, Dice};
use super::program::{BadKey, Kind};

/// Where a stretch of registered memory is to lie, and the pieces it is cut into.
pub type Pieces = Vec<(usize, usize)>;

/// Memory that is being laid out: every byte that belongs to nothing has some value, too.
pub struct Plan {
    bytes: Vec<u8>,
    dice: Dice,
}

/// Registered memory.
pub struct Image {
    pub region: Region,
    pub expected: Vec<u8>,
    pub registration: Registration,
}

impl Plan {
    pub fn new(number: u64) -> Self {
        Self { bytes: dice::bytes(number, 16), dice: Dice::new(number) }
    }

    fn fill(&mut self, len: usize) {
        let number = self.dice.u64();
        self.bytes.extend(dice::bytes(number, len));
    }

    /// Room for `len` bytes, in as many pieces as the kind of memory has.
    pub fn place(&mut self, kind: Kind, len: usize) -> Pieces {
        let mut left = len;
        let mut pieces = Vec::new();
        let count = match kind {
            Kind::None | Kind::Buf => return pieces,
            Kind::Segment => 1,
            Kind::List => self.dice.between(0, 4) + usize::from(len > 0),
        };
        for index in 0..count {
            let gap = self.dice.below(20);
            self.fill(gap);
            let len = if index + 1 == count { left } else { self.dice.below(left + 1) };
            pieces.push((self.bytes.len(), len));
            self.fill(len);
            left -= len;
        }
        pieces
    }

    /// Puts what is to be sent into its place.
    pub fn put(&mut self, pieces: &Pieces, mut content: &[u8]) {
        for &(at, len) in pieces {
            let (now, rest) = content.split_at(len);
            self.bytes[at..at + len].copy_from_slice(now);
            content = rest;
        }
    }

    pub fn register(mut self, nic: &mut Nic, domain: Domain, rights: Rights) -> Image {
        let gap = self.dice.below(20);
        self.fill(gap);
        Image::new(nic, domain, rights, self.bytes)
    }
}

impl Image {
    pub fn new(nic: &mut Nic, domain: Domain, rights: Rights, bytes: Vec<u8>) -> Self {
        let region = Region::from_bytes(&bytes);
        let registration = nic.register(domain, region.clone(), rights).expect("a large table");
        Self { region, expected: bytes, registration }
    }

    /// What is there now, of a range.
    pub fn now(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.region.read_at(at, &mut bytes).expect("within the region");
        bytes
    }

    /// Whether the memory is as expected, or where it first is not.
    pub fn check(&self, what: &str) -> Result<(), String> {
        let now = self.now(0, self.region.len());
        match now.iter().zip(&self.expected).position(|(now, expected)| now != expected) {
            None => Ok(()),
            Some(at) => Err(format!(
                "{what}: byte {at} of {} is {:#04x} and should be {:#04x}",
                now.len(),
                now[at],
                self.expected[at]
            )),
        }
    }

    /// The pieces as a request names them.
    pub fn memory(&self, kind: Kind, pieces: &Pieces) -> Memory {
        let segment =
            |&(at, len): &(usize, usize)| self.registration.segment(at as u64, len as u32);
        match kind {
            Kind::Segment => Memory::Segment(segment(&pieces[0])),
            Kind::List => Memory::List(pieces.iter().map(segment).collect()),
            Kind::None | Kind::Buf => Memory::None,
        }
    }
}

/// The registrations of a node that are there to be named wrongly.
pub struct Traps {
    /// Of another domain, with every right.
    pub foreign: Image,
    /// Without any right.
    pub silent: Image,
    /// Taken back, its place in the table still free.
    pub revoked: Image,
    /// Taken back, and another registration in its place.
    pub replaced: Image,
    pub replacement: Image,
}

impl Traps {
    pub fn new(nic: &mut Nic, domain: Domain, dice: &mut Dice) -> Self {
        let all = Rights::LOCAL_WRITE | Rights::REMOTE_WRITE;
        let other = nic.domain();
        let mut image = |nic: &mut Nic, domain, rights| {
            let len = dice.between(1, 500);
            Image::new(nic, domain, rights, dice::bytes(dice.u64(), len))
        };
        let replaced = image(nic, domain, all);
        nic.deregister(replaced.registration.lkey).expect("it was just registered");
        let replacement = image(nic, domain, all);
        let foreign = image(nic, other, all);
        let silent = image(nic, domain, Rights::NONE);
        let revoked = image(nic, domain, all);
        nic.deregister(revoked.registration.lkey).expect("it was just registered");
        Self { foreign, silent, revoked, replaced, replacement }
    }

    /// A key and an address that are wrong in this way, for `len` bytes that should lie in `own`.
    fn wrong(&self, bad: BadKey, own: &Image, len: usize) -> (Registration, u64) {
        let mut own = own.registration;
        let end = own.address.0 + own.len - len as u64;
        match bad {
            BadKey::Unknown => {
                // A place that no registration has, and random bits that none has.
                own.lkey = Lkey(own.lkey.0 ^ 0x8000_0080);
                own.rkey.0 ^= 0x8000_0080;
                (own, own.address.0)
            }
            BadKey::Revoked => (self.revoked.registration, self.revoked.registration.address.0),
            BadKey::Replaced => {
                // The memory of the new registration, by the key of the old one.
                (self.replaced.registration, self.replacement.registration.address.0)
            }
            BadKey::Domain => (self.foreign.registration, self.foreign.registration.address.0),
            BadKey::Rights => (self.silent.registration, self.silent.registration.address.0),
            BadKey::Beyond(by) => (own, end + by as u64),
            BadKey::Before => (own, own.address.0 - 1),
            BadKey::Wraps => (own, u64::MAX - len as u64 / 2),
        }
    }

    /// What a peer is told: the key, and where to write.
    pub fn remote(&self, bad: BadKey, own: &Image, len: usize) -> (u32, u64) {
        let (registration, address) = self.wrong(bad, own, len);
        (registration.rkey.0, address)
    }

    /// Spoils a segment.
    pub fn segment(&self, bad: BadKey, own: &Image, segment: &mut Segment) {
        let (registration, address) = self.wrong(bad, own, segment.len as usize);
        (segment.lkey, segment.address) = (registration.lkey, address);
    }

    pub fn check(&self, node: usize) -> Result<(), String> {
        let Self { foreign, silent, revoked, replaced, replacement } = self;
        for image in [foreign, silent, revoked, replaced, replacement] {
            image.check(&format!("memory of node {node} that nobody may write"))?;
        }
        Ok(())
    }
}
