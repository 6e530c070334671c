//! Registered memory, and beside it what its bytes must be.

use doorbell::memory::Region;
use doorbell::nic::{Domain, Lkey, Memory, Nic, Registration, Rights, Segment};
use doorbell::wire::{RemoteAddr, Rkey};

use super::dice::{self, Dice};
use super::message::Kind;
use super::program::Revoked;
use super::spoil::{BadKey, without};

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

    /// What is there now, by words.
    pub fn words(&self) -> Vec<u64> {
        let words = (0..self.region.len() / 8).map(|word| self.region.load(word * 8));
        words.map(|word| word.expect("within the region")).collect()
    }

    pub fn expect_words(&mut self, words: &[u64]) {
        self.expected = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    }

    /// The bytes of some pieces, and what they should be.
    pub fn gather(&self, pieces: &Pieces) -> (Vec<u8>, Vec<u8>) {
        let now = pieces.iter().flat_map(|&(at, len)| self.now(at, len));
        let expected = pieces.iter().flat_map(|&(at, len)| &self.expected[at..at + len]);
        (now.collect(), expected.copied().collect())
    }

    /// Expects these bytes at the front of some pieces.
    pub fn expect(&mut self, pieces: &Pieces, mut bytes: &[u8]) {
        for &(at, len) in pieces {
            let (now, rest) = bytes.split_at(len.min(bytes.len()));
            self.expected[at..at + now.len()].copy_from_slice(now);
            bytes = rest;
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

/// What one end of a connection has registered.
pub struct Images {
    /// What it sends, and what it reads into.
    pub source: Image,
    pub fetched: Image,
    pub landing: Image,
    /// What its peer writes and reads, and another key for that.
    pub target: Image,
    pub lent: Registration,
    /// What its peer only reads.
    pub library: Image,
    /// What its peer adds to, and swaps.
    pub words: Image,
}

impl Images {
    pub fn image(&self, what: Revoked) -> &Image {
        match what {
            Revoked::Source => &self.source,
            Revoked::Fetched => &self.fetched,
            Revoked::Landing => &self.landing,
            Revoked::Target => &self.target,
            Revoked::Library => &self.library,
            Revoked::Words => &self.words,
        }
    }

    /// Every registration that this memory is known by.
    pub fn registrations(&self, what: Revoked) -> Vec<Registration> {
        let lent = (what == Revoked::Target).then_some(self.lent);
        [self.image(what).registration].into_iter().chain(lent).collect()
    }

    pub fn check(&self) -> Result<(), String> {
        self.source.check("memory to send from")?;
        self.fetched.check("memory to read into")?;
        self.landing.check("memory to receive into")?;
        self.target.check("memory that may be written")?;
        self.library.check("memory that may only be read")?;
        self.words.check("words")
    }
}

/// The registrations of a node that are there to be named wrongly.
pub struct Traps {
    /// Of another domain, with every right.
    foreign: Image,
    /// Each without one of the rights.
    lacking: Vec<(Rights, Image)>,
    /// Taken back, its place in the table still free.
    revoked: Image,
    /// Taken back, and another registration in its place.
    replaced: Image,
    replacement: Image,
}

/// Some bytes of a node's, and what would be right to say of them.
pub struct Own {
    pub registration: Registration,
    pub len: usize,
    pub needed: Rights,
}

impl Traps {
    pub fn new(nic: &mut Nic, domain: Domain, dice: &mut Dice) -> Self {
        let all = without(Rights::NONE);
        let other = nic.domain();
        let mut image = |nic: &mut Nic, domain, rights| {
            let len = dice.between(1, 500);
            Image::new(nic, domain, rights, dice::bytes(dice.u64(), len))
        };
        let replaced = image(nic, domain, all);
        nic.deregister(replaced.registration.lkey).expect("it was just registered");
        let replacement = image(nic, domain, all);
        let foreign = image(nic, other, all);
        let peers = Rights::REMOTE_WRITE | Rights::REMOTE_READ | Rights::REMOTE_ATOMIC;
        let lacking = vec![
            (Rights::LOCAL_WRITE, image(nic, domain, peers)),
            (Rights::REMOTE_WRITE, image(nic, domain, without(Rights::REMOTE_WRITE))),
            (Rights::REMOTE_READ, image(nic, domain, without(Rights::REMOTE_READ))),
            (Rights::REMOTE_ATOMIC, image(nic, domain, without(Rights::REMOTE_ATOMIC))),
        ];
        let revoked = image(nic, domain, all);
        nic.deregister(revoked.registration.lkey).expect("it was just registered");
        Self { foreign, lacking, revoked, replaced, replacement }
    }

    /// A key and an address that are wrong in this way.
    fn wrong(&self, bad: BadKey, own: &Own) -> (Registration, u64) {
        let Own { registration: mut named, len, needed } = *own;
        let end = named.address.0 + named.len - len as u64;
        match bad {
            BadKey::Unknown => {
                // Random bits that no key has.
                named.lkey = Lkey(named.lkey.0 ^ 0x8000_0080);
                named.rkey.0 ^= 0x8000_0080;
                (named, named.address.0)
            }
            BadKey::Revoked => (self.revoked.registration, self.revoked.registration.address.0),
            BadKey::Replaced => {
                // The memory of the new registration, by the key of the old one.
                (self.replaced.registration, self.replacement.registration.address.0)
            }
            BadKey::Domain => (self.foreign.registration, self.foreign.registration.address.0),
            BadKey::Rights => {
                let lacking = self.lacking.iter().find(|(right, _)| *right == needed);
                let (_, image) = lacking.expect("something is needed");
                (image.registration, image.registration.address.0)
            }
            // It was good before.
            BadKey::Invalidated => (named, named.address.0),
            BadKey::Beyond(by) => (named, end + by as u64),
            BadKey::Before => (named, named.address.0 - 1),
            BadKey::Wraps => (named, u64::MAX - len as u64 / 2),
        }
    }

    /// What a peer is told: the key, and the address.
    pub fn remote(&self, bad: BadKey, own: &Own) -> (Rkey, RemoteAddr) {
        let (registration, address) = self.wrong(bad, own);
        (registration.rkey, RemoteAddr(address))
    }

    /// Spoils a segment, of memory that is known by `registration` otherwise.
    pub fn segment(&self, bad: BadKey, registration: Registration, segment: &mut Segment) {
        let own = Own { registration, len: segment.len as usize, needed: Rights::LOCAL_WRITE };
        let (registration, address) = self.wrong(bad, &own);
        (segment.lkey, segment.address) = (registration.lkey, address);
    }

    pub fn check(&self, node: usize) -> Result<(), String> {
        let Self { foreign, lacking, revoked, replaced, replacement } = self;
        let others = [foreign, revoked, replaced, replacement];
        for image in lacking.iter().map(|(_, image)| image).chain(others) {
            image.check(&format!("memory of node {node} that nobody may touch"))?;
        }
        Ok(())
    }
}
