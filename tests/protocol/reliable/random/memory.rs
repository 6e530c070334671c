//! Registered memory, and beside it what its bytes must be.

use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::{Domain, Memory, Nic, Registration, Rights};

use super::dice::{self, Dice};
use super::message::Kind;
use super::model::OLD;
use super::program::Revoked;

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

/// A buffer that something is in already.
pub fn old_buf(room: usize) -> Memory {
    let mut buf = Buf::with_capacity(room);
    buf.extend_from_slice(&OLD[..OLD.len().min(room)]).expect("there is room");
    Memory::Buf(buf)
}
