//! Private epochs, in which a region's memory, or a part of it, has one owner.

use std::fmt;
use std::ptr::NonNull;
use std::slice;

use crate::memory::sys::words;
use crate::memory::{AccessError, Private, Region};
use crate::sync::AtomicU64;

impl Region {
    /// Begins a private epoch by agreement, where [`try_private`](Self::try_private) can't prove
    /// one: of memory that other processes map.
    ///
    /// # Safety
    /// Until the epoch ends nobody else, in this process or another, reads or writes the memory, by
    /// whatever handle, mapping or key.
    #[must_use]
    pub unsafe fn assume_private(self) -> Private {
        Private { region: self }
    }
}

/// The bytes of a region with a single handle, which are only read until it is opened again.
/// [`Private::freeze`] makes them.
///
/// ```
/// use bytes::Bytes;
/// use doorbell_core::memory::Region;
///
/// let frozen = Region::from_bytes(b"received").try_private()?.freeze();
/// let bytes = Bytes::from_owner(frozen); // not a copy
/// assert_eq!(bytes, "received");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Frozen {
    /// Invariant: this is the region's only handle, and no other reference leads to its memory.
    region: Region,
}

impl Frozen {
    /// Returns the region, which may be shared and written again.
    #[must_use]
    pub fn open(self) -> Region {
        self.region
    }
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        let (first, len) = (self.region.memory.first(), self.region.len());
        // SAFETY: the region keeps the bytes. Its only handle is in here, and is lent to nobody, so
        // nothing writes the bytes while this value lives.
        unsafe { slice::from_raw_parts(first.cast::<u8>().as_ptr(), len) }
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frozen({} bytes)", self.region.len())
    }
}

impl Private {
    /// Makes the bytes read-only, so that they can be lent by shared references, as
    /// [`Bytes`](bytes::Bytes) needs it.
    #[must_use]
    pub fn freeze(self) -> Frozen {
        Frozen { region: self.region }
    }
}

/// A part of a region that has one owner, by agreement of all who reach the region: see
/// [`Region::assume_private_part`].
pub struct PrivatePart {
    first: NonNull<u8>,
    len: usize,
    /// The region, which keeps the memory.
    _region: Region,
}

// SAFETY: like a `Box<[u8]>`, a part is bytes that only its owner reaches.
unsafe impl Send for PrivatePart {}
// SAFETY: by a shared reference the bytes are only read.
unsafe impl Sync for PrivatePart {}

impl PrivatePart {
    /// Lends the bytes for reading.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the region keeps the bytes, and the caller who made this part promised that nobody
        // else writes them.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    /// Lends the bytes for reading and writing.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the region keeps the bytes, and the caller who made this part promised that nobody
        // else reads or writes them. This reference is the only one, since it borrows the only owner.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl fmt::Debug for PrivatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivatePart({} bytes)", self.len)
    }
}

impl Region {
    /// Begins a private epoch of a part of the region, by agreement of all who reach the region.
    /// The rest of the region stays shared.
    ///
    /// # Errors
    /// When the part is not within the region.
    ///
    /// # Safety
    /// Until what this returns is dropped nobody else, in this process or another, reads or writes
    /// a byte of the part, by whatever handle, mapping or key; and nobody accesses a word that lies
    /// only partly within it.
    pub unsafe fn assume_private_part(
        &self,
        offset: usize,
        len: usize,
    ) -> Result<PrivatePart, AccessError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => {}
            _ => {
                let region = self.len();
                return Err(AccessError::OutOfBounds { offset, len, region });
            }
        }
        // SAFETY: the offset is within the words' bytes, or just behind them.
        let first = unsafe { self.memory.first().cast::<u8>().add(offset) };
        Ok(PrivatePart { first, len, _region: self.clone() })
    }
}

impl Private {
    /// Lends the memory as words that nobody else can access.
    #[inline]
    pub(in crate::memory) fn words_mut(&mut self) -> &mut [AtomicU64] {
        let memory = &self.region.memory;
        // SAFETY: the words exist, as for `Allocation::words`. Nobody else reaches them, which is this
        // type's invariant, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(memory.first().as_ptr(), words(memory.len())) }
    }
}
