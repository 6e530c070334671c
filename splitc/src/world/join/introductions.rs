//! The data about themselves that two processes exchange when they connect.
//!
//! | message | in | says |
//! |---|---|---|
//! | [`Knock`] | REQ | who asks, with a number that it has drawn |
//! | [`Challenge`] | REJ | a number of the process that is asked, and its proof that it knows the key |
//! | [`Introduction`] | REQ | the asking process: size of the world, heap, and its proof |
//! | [`Introduction`] | REP | the process that is asked: the same |
//!
//! The key never goes over the network, nor does the heap's place but hidden by the key. Proofs are
//! about the ranks, both numbers, all that is told, and both queue pairs.

use doorbell_am::proof::{Nonce, Proof, Statement};
use doorbell_verbs::{Qpn, RemoteMemory};

use crate::heap::CONTROL;

/// The first bytes of the data: a name, the version, and the byte order of this machine.
pub(super) const MAGIC: [u8; 8] =
    *if cfg!(target_endian = "little") { b"SplitC2l" } else { b"SplitC2b" };

const KNOCK: u8 = 1;
const CHALLENGE: u8 = 2;
const TOLD: u8 = 3;
const OTHER_KEY: u8 = 4;
/// The flag of an odd [epoch](doorbell_am::proof::Posed).
const ODD: u8 = 0x80;

/// The first request of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Knock {
    pub rank: u32,
    pub nonce: Nonce,
}

/// The answer to a [`Knock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Challenge {
    pub odd: bool,
    pub nonce: Nonce,
    pub proof: Proof,
}

/// The data of a process about itself: its rank, its heap, and a proof that it knows the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Introduction {
    pub odd: bool,
    pub rank: u32,
    pub size: u32,
    /// The heap, hidden by the key.
    pub heap: [u8; RemoteMemory::ENCODED],
    /// The number of the knock.
    pub nonce: Nonce,
    pub proof: Proof,
}

/// A request of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Knocks(Knock),
    Tells(Introduction),
    /// The process of this rank has found that the challenge was proved by another key.
    OtherKey(u32),
}

impl Asked {
    pub fn read(private: &[u8]) -> Option<Self> {
        let (kind, rest) = headed(private)?;
        match kind & !ODD {
            KNOCK => Knock::read(rest).map(Self::Knocks),
            TOLD => Introduction::read(private).map(Self::Tells),
            OTHER_KEY => rest.first_chunk().map(|rank| Self::OtherKey(u32::from_be_bytes(*rank))),
            _ => None,
        }
    }

    /// Tells that the challenge was proved by another key.
    pub fn other_key(rank: u32) -> Vec<u8> {
        [&MAGIC[..], &[OTHER_KEY], &rank.to_be_bytes()].concat()
    }
}

/// Takes the first bytes off data, and the kind of message.
fn headed(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (&kind, rest) = rest.split_first()?;
    (*magic == MAGIC).then_some((kind, rest))
}

fn kind(kind: u8, odd: bool) -> [u8; 1] {
    [if odd { kind | ODD } else { kind }]
}

impl Knock {
    pub fn to_bytes(self) -> Vec<u8> {
        [&MAGIC[..], &[KNOCK], &self.rank.to_be_bytes(), &self.nonce.0].concat()
    }

    fn read(rest: &[u8]) -> Option<Self> {
        let (rank, rest) = rest.split_first_chunk()?;
        Some(Self { rank: u32::from_be_bytes(*rank), nonce: Nonce(*rest.first_chunk()?) })
    }
}

impl Challenge {
    pub fn to_bytes(self) -> Vec<u8> {
        [&MAGIC[..], &kind(CHALLENGE, self.odd), &self.nonce.0, &self.proof.0].concat()
    }

    pub fn read(private: &[u8]) -> Option<Self> {
        let (kind, rest) = headed(private)?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let challenge =
            Self { odd: kind & ODD != 0, nonce: Nonce(*nonce), proof: Proof(*rest.first_chunk()?) };
        (kind & !ODD == CHALLENGE).then_some(challenge)
    }
}

impl Introduction {
    pub fn to_bytes(self) -> Vec<u8> {
        let Self { odd, rank, size, heap, nonce, proof } = self;
        let (rank, size) = (rank.to_be_bytes(), size.to_be_bytes());
        [&MAGIC[..], &kind(TOLD, odd), &rank, &size, &heap, &nonce.0, &proof.0].concat()
    }

    pub fn read(private: &[u8]) -> Option<Self> {
        let (kind, rest) = headed(private)?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (heap, rest) = rest.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let told = Self {
            odd: kind & ODD != 0,
            rank: u32::from_be_bytes(*rank),
            size: u32::from_be_bytes(*size),
            heap: *heap,
            nonce: Nonce(*nonce),
            proof: Proof(*rest.first_chunk()?),
        };
        (kind & !ODD == TOLD).then_some(told)
    }

    fn unproven(self) -> Vec<u8> {
        Self { proof: Proof::default(), ..self }.to_bytes()
    }
}

/// A connection that is being made between two processes, and the numbers that both have drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    /// The ranks of the process that asks, and of the one that is asked.
    pub ranks: [u32; 2],
    /// The numbers of the knock, and of the challenge.
    pub nonces: [Nonce; 2],
}

impl Between {
    fn statement(&self, label: &str, parts: &[&[u8]]) -> Statement {
        let ([asks, asked], [knock, challenge]) = (self.ranks.map(u32::to_be_bytes), self.nonces);
        let own: [&[u8]; 4] = [&asks, &asked, &knock.0, &challenge.0];
        Statement::of(label, &[&own, parts].concat())
    }

    /// Returns the statement that the process that is asked proves by its challenge.
    pub fn challenged(&self) -> Statement {
        self.statement("doorbell split-c: the challenging side", &[])
    }

    /// Returns the statement that the process that asks proves when it tells about itself, by the
    /// queue pair of this number.
    pub fn asks(&self, told: Introduction, qpn: Qpn) -> Statement {
        let (told, qpn) = (told.unproven(), qpn.get().to_be_bytes());
        self.statement("doorbell split-c: the asking side", &[&told, &qpn])
    }

    /// Returns the statement that the process that is asked proves when it tells about itself, after
    /// the other has done so.
    pub fn accepts(&self, [asks, told]: [Introduction; 2], qpns: [Qpn; 2]) -> Statement {
        let [from, to] = qpns.map(|qpn| qpn.get().to_be_bytes());
        let parts: [&[u8]; 4] = [&asks.to_bytes(), &told.unproven(), &from, &to];
        self.statement("doorbell split-c: the accepting side", &parts)
    }

    /// Hides the heap that a process tells, or shows it again.
    pub fn hide(&self, rank: u32, key: u64, heap: [u8; 20]) -> [u8; 20] {
        self.statement("doorbell split-c: the heap", &[&rank.to_be_bytes()]).hide(key, heap)
    }
}

/// The properties that all processes of a world must have in common, beside the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Same {
    /// The number of processes.
    pub size: u32,
    /// The length of a heap.
    pub heap: u64,
}

/// The difference between processes of which neither knows the other's key, which learn nothing
/// else of each other.
pub(super) const DIFFERENT_KEY: &str = "it has another key";

impl Same {
    /// The difference between a process that has this and one that has `other`, if the two can't be
    /// of one world, in words for the former.
    pub fn differs(&self, other: &Self) -> Option<String> {
        if self.size != other.size {
            let (own, others) = (self.size, other.size);
            return Some(format!("it was given {others} addresses, and this process {own}"));
        }
        // As the program has configured the heaps, without the library's own words.
        let [own, others] = [self, other].map(|same| same.heap.saturating_sub(CONTROL));
        (self.heap != other.heap)
            .then(|| format!("its heap has {others} bytes, and this process's {own}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_tells_is_read_as_it_was_written_and_fits_a_request() {
        let (nonce, proof) = (Nonce([7; 16]), Proof([9; 16]));
        for odd in [false, true] {
            let knock = Knock { rank: 5, nonce };
            assert_eq!(Asked::read(&knock.to_bytes()), Some(Asked::Knocks(knock)));
            let told = Introduction { odd, rank: 5, size: 6, heap: [3; 20], nonce, proof };
            let bytes = told.to_bytes();
            // More than 76 bytes leave no room in a request for extensions of the standard.
            assert!(bytes.len() <= 76, "{}", bytes.len());
            assert_eq!(Asked::read(&bytes), Some(Asked::Tells(told)));
            assert_eq!(Introduction::read(&bytes[..bytes.len() - 1]), None);
            let challenge = Challenge { odd, nonce, proof };
            assert_eq!(Challenge::read(&challenge.to_bytes()), Some(challenge));
            assert_eq!((Challenge::read(&bytes), Asked::read(&challenge.to_bytes())), (None, None));
        }
        assert_eq!(Asked::read(&Asked::other_key(3)), Some(Asked::OtherKey(3)));
    }

    /// A heap that was shorter than the library's own words was taken for an empty one.
    #[test]
    fn heaps_differ_however_short_they_are() {
        let same = Same { size: 2, heap: CONTROL };
        for heap in [0, CONTROL - 1, CONTROL + 1] {
            assert!(same.differs(&Same { heap, ..same }).is_some(), "{heap}");
        }
        assert_eq!(same.differs(&same), None);
    }
}
