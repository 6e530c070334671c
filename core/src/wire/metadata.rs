//! Metadata of RDMA writes: an extension header of ours.

use std::fmt;

use super::malformed::{Malformed, Part};
use crate::fields::{at, be32, put};

/// Up to sixteen bytes that go with a write into the completion of the receive that it consumes.
/// This is an extension of ours. On the wire, a word with their number is followed by always
/// sixteen bytes.
///
/// ```
/// use doorbell_core::wire::Metadata;
///
/// let metadata = Metadata::try_from(b"a word".as_slice())?;
/// assert_eq!(metadata.as_ref(), b"a word");
/// # Ok::<(), doorbell_core::wire::MetadataTooLong>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// The number of bytes, at most sixteen.
    len: u8,
    bytes: [u8; Self::MOST],
}

impl Metadata {
    /// The most bytes that metadata may have.
    pub const MOST: usize = 16;
    /// The length of metadata on the wire.
    pub const LEN: usize = 4 + Self::MOST;

    /// Copies `bytes`, if they are not more than [`MOST`](Self::MOST).
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut own = [0; Self::MOST];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: u8::try_from(bytes.len()).ok()?, bytes: own })
    }

    /// Returns the bytes of the metadata.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // `len` is never more than the length of the array.
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    pub(super) fn from_bytes(h: [u8; Self::LEN]) -> Result<Self, Malformed> {
        let (claimed, have) = (be32::<0, _>(&h), Self::MOST);
        match u8::try_from(claimed) {
            Ok(len) if usize::from(len) <= have => Ok(Self { len, bytes: at::<4, _, _>(&h) }),
            _ => {
                let claimed = claimed as usize;
                Err(Malformed::Length { part: Part::Extensions, claimed, have })
            }
        }
    }

    pub(super) fn emit(self, out: &mut [u8]) -> &mut [u8] {
        put(put(out, u32::from(self.len).to_be_bytes()), self.bytes)
    }
}

/// The error for more bytes than metadata may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{len} bytes are too many for metadata, which may be up to {} bytes", Metadata::MOST)]
pub struct MetadataTooLong {
    /// The number of bytes that were given.
    pub len: usize,
}

impl TryFrom<&[u8]> for Metadata {
    type Error = MetadataTooLong;

    fn try_from(bytes: &[u8]) -> Result<Self, MetadataTooLong> {
        Self::new(bytes).ok_or(MetadataTooLong { len: bytes.len() })
    }
}

impl AsRef<[u8]> for Metadata {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metadata({:?})", self.bytes())
    }
}
