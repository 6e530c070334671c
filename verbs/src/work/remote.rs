//! Remote memory: how requests name the memory of a peer.

use std::fmt;
use std::str::FromStr;

use doorbell_core::memory::AccessError;
use doorbell_core::nic::{Data, Memory};
use doorbell_core::wire::{RemoteAddr, Rkey};
use thiserror::Error;

use crate::error::Failed;

/// The memory of a peer: an address, a length, and the key that the peer has told.
///
/// Remote memory is a plain value, which travels as text, as [20 bytes](Self::to_bytes), or, with
/// the feature `serde`, in any format. Every program that has the value may do with the memory what
/// the peer has granted.
///
/// ```
/// use doorbell_verbs::RemoteMemory;
///
/// let memory: RemoteMemory = "7f0012345000+4096@8c0ffee1".parse()?;
/// assert_eq!(memory.len(), 4096);
/// assert_eq!(memory.at(4000, 96).map(|part| part.to_string()),
///            Ok("7f0012345fa0+96@8c0ffee1".to_owned()));
/// assert!(memory.at(4000, 97).is_err());
/// assert_eq!(RemoteMemory::from_bytes(memory.to_bytes()), memory);
/// # Ok::<(), doorbell_verbs::RemoteMemoryError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteMemory {
    address: u64,
    rkey: u32,
    len: u64,
}

/// The error of text that does not name remote memory.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` does not name remote memory: the form is ADDRESS+LENGTH@KEY, with the length in decimal"
)]
pub struct RemoteMemoryError(String);

impl RemoteMemory {
    /// The number of bytes that [`to_bytes`](Self::to_bytes) returns.
    pub const ENCODED: usize = 20;

    /// Names remote memory whose address, key and length a peer has told in some other way.
    pub const fn new(address: RemoteAddr, rkey: Rkey, len: u64) -> Self {
        Self { address: address.0, rkey: rkey.0, len }
    }

    /// Returns the address at which the memory begins, in the peer's address space.
    pub const fn address(&self) -> RemoteAddr {
        RemoteAddr(self.address)
    }

    /// Returns the key that the peer has given for the memory.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey)
    }

    /// Returns the number of bytes of the memory.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the memory has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the part of `len` bytes that begins at `offset`.
    ///
    /// # Errors
    /// Returns an error when the part is not within the memory.
    pub fn at(&self, offset: u64, len: u64) -> Result<Self, AccessError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => {
                Ok(Self { address: self.address.wrapping_add(offset), len, ..*self })
            }
            _ => Err(AccessError::OutOfBounds {
                offset: offset as usize,
                len: len as usize,
                region: self.len as usize,
            }),
        }
    }

    /// Encodes the memory in 20 bytes: address, length and key, each big-endian.
    pub fn to_bytes(&self) -> [u8; Self::ENCODED] {
        let mut bytes = [0; Self::ENCODED];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.rkey.to_be_bytes());
        bytes
    }

    /// Decodes what [`to_bytes`](Self::to_bytes) has encoded.
    pub fn from_bytes(bytes: [u8; Self::ENCODED]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rkey @ ..] = bytes;
        Self {
            address: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            len: u64::from_be_bytes([i, j, k, l, m, n, o, p]),
            rkey: u32::from_be_bytes(rkey),
        }
    }

    /// Decodes remote memory from the first 20 bytes of a message or of private data. Returns
    /// nothing when there are fewer bytes.
    pub fn from_prefix(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self::from_bytes)
    }

    /// Returns the data if this memory has room for all of it. The data stays in registers on the
    /// way.
    #[inline(always)]
    pub(crate) fn check(&self, data: Data) -> Result<Data, Failed> {
        match data.len() <= self.len {
            true => Ok(data),
            false => Err(self.has_no_room(data)),
        }
    }

    #[cold]
    fn has_no_room(&self, data: Data) -> Failed {
        let len = data.len();
        let memory = match data {
            Data::Inline(_) => Memory::None,
            Data::Memory(memory) => memory,
        };
        Failed::beyond((len, self.len), memory)
    }

    /// Returns the local memory if this remote memory is long enough to fill it.
    pub(crate) fn check_room(&self, memory: Memory) -> Result<Memory, Failed> {
        match memory.room() {
            room if room <= self.len => Ok(memory),
            room => Err(Failed::beyond((room, self.len), memory)),
        }
    }

    /// The key of the memory, and the address at which it begins.
    pub(crate) fn place(&self) -> (Rkey, RemoteAddr) {
        (self.rkey(), self.address())
    }

    pub(crate) fn check_word(&self) -> Result<(), Failed> {
        let fits = self.len >= 8 && self.address.is_multiple_of(8);
        if fits { Ok(()) } else { Err(Failed::no_word(self.address, self.len)) }
    }
}

impl From<[u8; Self::ENCODED]> for RemoteMemory {
    fn from(bytes: [u8; Self::ENCODED]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl From<RemoteMemory> for [u8; RemoteMemory::ENCODED] {
    fn from(memory: RemoteMemory) -> Self {
        memory.to_bytes()
    }
}

impl fmt::Display for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}+{}@{:08x}", self.address, self.len, self.rkey)
    }
}

impl FromStr for RemoteMemory {
    type Err = RemoteMemoryError;

    fn from_str(text: &str) -> Result<Self, RemoteMemoryError> {
        let parsed = || {
            let (address, rest) = text.split_once('+')?;
            let (len, rkey) = rest.split_once('@')?;
            let address = u64::from_str_radix(address, 16).ok()?;
            let rkey = u32::from_str_radix(rkey, 16).ok()?;
            Some(Self { address, len: len.parse().ok()?, rkey })
        };
        parsed().ok_or_else(|| RemoteMemoryError(text.to_owned()))
    }
}
