//! The data about themselves that two processes exchange when they connect.

use doorbell_verbs::RemoteMemory;

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

    pub fn heap(&self) -> RemoteMemory {
        RemoteMemory::from_bytes(self.heap)
    }
}
