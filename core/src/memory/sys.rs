//! Where a region's words are and what keeps them there: this module's unsafe code.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

#[cfg(not(loom))]
use super::Private;
use super::Region;
use crate::sync::AtomicU64;

/// Words that are there for as long as this is: two processor words to reach them by, and a count.
#[derive(Clone)]
pub(super) struct Held {
    first: NonNull<AtomicU64>,
    /// In bytes; the last word may be a part only.
    len: usize,
    #[cfg_attr(loom, allow(dead_code))]
    owner: Arc<Owner>,
}

/// How many words there are where there are so many bytes.
#[inline]
const fn words(len: usize) -> usize {
    #[expect(clippy::manual_div_ceil, reason = "it provides for a length that no memory has")]
    let words = (len + 7) / 8;
    words
}

/// Dropped with the last handle, and otherwise looked at by nobody.
enum Owner {
    Heap { _keeps: Heap },
    Foreign { _keeps: Box<dyn Send + Sync> },
}

/// An allocation, by pointer: a `Box` would say that it alone leads there.
struct Heap(NonNull<[AtomicU64]>);

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and whoever could reach the words held this.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: as a box of atomics, which is both.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Held {
    /// Zeros.
    pub fn new(len: usize) -> Self {
        let words: Box<[_]> = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let words = NonNull::from(Box::leak(words));
        Self { first: words.cast(), len, owner: Arc::new(Owner::Heap { _keeps: Heap(words) }) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: whoever made this saw to it that so many words are there for as long as the owner
        // is, which is as long as self.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), words(self.len)) }
    }

    /// Whether this is the only handle, and nobody but handles leads to the words.
    #[cfg(not(loom))]
    pub fn is_alone(&mut self) -> bool {
        // The look is an acquire, and each drop of a handle was a release.
        matches!(Arc::get_mut(&mut self.owner), Some(Owner::Heap { .. }))
    }

    /// How many other handles there are at this moment.
    #[cfg(not(loom))]
    pub fn others(&self) -> usize {
        Arc::strong_count(&self.owner) - 1
    }

    /// Whether the words came from elsewhere.
    #[cfg(not(loom))]
    pub fn is_foreign(&self) -> bool {
        matches!(*self.owner, Owner::Foreign { .. })
    }
}

// SAFETY: it leads to atomics, and to what keeps them, all of which any thread may use and drop.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Region {
    /// A region on memory from elsewhere: mapped by several processes, or a C program's. `owner` is
    /// dropped with the last handle.
    ///
    /// It can do everything that other regions can but become [private](Self::try_private): whether
    /// anybody else leads there is not known here.
    ///
    /// # Safety
    /// From `first` on, `len` bytes, rounded up to whole words, must be memory that can be read and
    /// written for as long as `owner` is not dropped, wherever it is moved. Meanwhile this process
    /// reaches them by atomic accesses to these words only. (What other processes do there is no
    /// access of this program's, whatever its size: a word is read as one that was written to it.)
    #[must_use]
    pub unsafe fn foreign(
        first: NonNull<AtomicU64>,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        let owner = Arc::new(Owner::Foreign { _keeps: Box::new(owner) });
        Self { memory: Held { first, len, owner } }
    }

    /// A private epoch by agreement, where [`try_private`](Self::try_private) can't prove one: of
    /// memory that other processes map.
    ///
    /// # Safety
    /// Until the epoch ends nobody else, in this process or another, reads or writes the memory, by
    /// whatever handle, mapping or key.
    #[cfg(not(loom))]
    #[must_use]
    pub unsafe fn assume_private(self) -> Private {
        Private { region: self }
    }
}

/// The bytes of a region that nobody else holds, which are only read until it is a region again: made by
/// [`Private::freeze`].
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
#[cfg(not(loom))]
pub struct Frozen {
    /// Invariant: the only handle, and all that leads to the memory.
    region: Region,
}

#[cfg(not(loom))]
impl Frozen {
    /// The region, to be shared and written again.
    #[must_use]
    pub fn open(self) -> Region {
        self.region
    }
}

#[cfg(not(loom))]
impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        let (first, len) = (self.region.memory.first, self.region.len());
        // SAFETY: the region keeps the bytes. Its only handle is in here, and is lent to nobody: so
        // nothing writes the bytes while this lives.
        unsafe { slice::from_raw_parts(first.cast::<u8>().as_ptr(), len) }
    }
}

#[cfg(not(loom))]
impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frozen({} bytes)", self.region.len())
    }
}

#[cfg(not(loom))]
impl Private {
    /// Lends the bytes by shared references from now on, as [`Bytes`](bytes::Bytes) need it.
    #[must_use]
    pub fn freeze(self) -> Frozen {
        Frozen { region: self.region }
    }
}

/// A part of a region that is one owner's alone, by agreement of all who reach the region: see
/// [`Region::assume_private_part`].
#[cfg(not(loom))]
pub struct PrivatePart {
    first: NonNull<u8>,
    len: usize,
    /// Keeps the memory.
    _region: Region,
}

// SAFETY: a part is bytes that its owner alone reaches, and what keeps them, as a `Box<[u8]>` is.
#[cfg(not(loom))]
unsafe impl Send for PrivatePart {}
// SAFETY: by a shared reference the bytes are only read.
#[cfg(not(loom))]
unsafe impl Sync for PrivatePart {}

#[cfg(not(loom))]
impl PrivatePart {
    /// The bytes, to read.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the region keeps the bytes, and nobody else writes them: so it was promised.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    /// The bytes, to read and write.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the region keeps the bytes, and nobody else reads or writes them: so it was
        // promised. This reference is the only one, for it borrows the only owner.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

#[cfg(not(loom))]
impl std::fmt::Debug for PrivatePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivatePart({} bytes)", self.len)
    }
}

#[cfg(not(loom))]
impl Region {
    /// A private epoch of a part of the region, by agreement of all who reach the region. The rest
    /// of the region stays shared.
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
    ) -> Result<PrivatePart, super::AccessError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => {}
            _ => {
                let region = self.len();
                return Err(super::AccessError::OutOfBounds { offset, len, region });
            }
        }
        // SAFETY: the offset is within the words' bytes, or just behind them.
        let first = unsafe { self.memory.first.cast::<u8>().add(offset) };
        Ok(PrivatePart { first, len, _region: self.clone() })
    }
}

#[cfg(not(loom))]
impl Private {
    /// The memory as plain words.
    #[inline]
    pub(super) fn words_mut(&mut self) -> &mut [AtomicU64] {
        let memory = &self.region.memory;
        // SAFETY: the words are there, as for `Held::words`; and nobody else reaches them, which is
        // this type's invariant, while nobody can do so by `self`.
        unsafe { slice::from_raw_parts_mut(memory.first.as_ptr(), words(memory.len)) }
    }
}
