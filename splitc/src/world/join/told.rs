//! The data about themselves that two processes exchange when they connect.

use doorbell_verbs::RemoteMemory;

use crate::heap::CONTROL;

/// The data that a process sends about itself when it connects to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Told {
    pub rank: u32,
    pub size: u32,
    pub key: u64,
    pub heap: [u8; RemoteMemory::ENCODED],
}

/// The first bytes of the data: a name, the version, and the byte order of this machine.
pub(super) const MAGIC: [u8; 8] =
    *if cfg!(target_endian = "little") { b"SplitC1l" } else { b"SplitC1b" };

impl Told {
    pub fn to_bytes(self) -> Vec<u8> {
        let Self { rank, size, key, heap } = self;
        let (rank, size, key) = (rank.to_be_bytes(), size.to_be_bytes(), key.to_be_bytes());
        [&MAGIC[..], &rank, &size, &key, &heap].concat()
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let told = Self {
            rank: u32::from_be_bytes(*rank),
            size: u32::from_be_bytes(*size),
            key: u64::from_be_bytes(*key),
            heap: *rest.first_chunk()?,
        };
        (*magic == MAGIC).then_some(told)
    }

    /// The difference between a process that tells this about itself and one that tells `other`, if
    /// the two can't be of one world, in words for the former. Processes with different keys learn
    /// nothing else of each other.
    pub fn differs(&self, other: &Self) -> Option<String> {
        // As the program has configured the heaps, without the library's own words.
        let [own, others] = [self, other].map(|told| told.heap().len().saturating_sub(CONTROL));
        if self.key != other.key {
            return Some("it has another key".to_owned());
        }
        if self.size != other.size {
            let (own, others) = (self.size, other.size);
            return Some(format!("it was given {others} addresses, and this process {own}"));
        }
        (own != others).then(|| format!("its heap has {others} bytes, and this process's {own}"))
    }

    pub fn heap(&self) -> RemoteMemory {
        RemoteMemory::from_bytes(self.heap)
    }
}
