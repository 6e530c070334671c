//! Regions: memory that peers may write.

use super::sys::Allocation;
use super::words;
use crate::sync::{AtomicU64, Ordering};
use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use thiserror::Error;

/// The reason why an access to a region was refused. Nothing was read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AccessError {
    /// The range has a byte that is not the region's.
    #[error("{len} bytes at offset {offset} do not lie within a region of {region} bytes")]
    OutOfBounds {
        /// The offset at which the range begins.
        offset: usize,
        /// The length of the range.
        len: usize,
        /// The length of the region.
        region: usize,
    },
    /// The offset of a single word lies between two words.
    #[error("a word was asked for at offset {offset}, which is not a multiple of 8")]
    Misaligned {
        /// The offset that was given for the word.
        offset: usize,
    },
}

/// A handle to memory of fixed length that many may read and write at once.
///
/// Clones are handles to the same memory, which lives until the last is dropped: a peer's write
/// never finds it gone. Every handle may be used from every thread. Offsets are in bytes; ranges
/// need no alignment, single words do.
///
/// ```
/// use doorbell_core::memory::Region;
///
/// let region = Region::new(4096);
/// let same = region.clone();
/// region.write_at(100, b"written by one")?;
/// let mut read = [0; 14];
/// same.read_at(100, &mut read)?;
/// assert_eq!(&read, b"written by one");
/// # Ok::<(), doorbell_core::memory::AccessError>(())
/// ```
///
/// A region never lends a slice of its bytes, since a slice promises that nobody writes them. To
/// get slices, see [`try_private`](Self::try_private).
#[derive(Clone)]
pub struct Region {
    pub(super) memory: Allocation,
}

impl Region {
    /// Makes a region of `len` zeros.
    pub fn new(len: usize) -> Self {
        Self { memory: Allocation::new(len) }
    }

    /// Makes a region that holds a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let region = Self::new(bytes.len());
        words::copy_in(region.words(), 0, bytes);
        region
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether the region has no bytes at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the region's memory, for callers that access it through [`words`] without a check
    /// for each access.
    ///
    /// If the length is not a multiple of 8, the last word ends in bytes that are not the region's,
    /// and must not be used. The region's own methods access memory through this method, too.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// Asks the processor to fetch the word at `offset` into its cache, since the word will be
    /// written soon. This is a hint: it changes nothing, and an offset that is not within the region
    /// is let pass.
    #[inline]
    pub fn prefetch_to_write(&self, offset: usize) {
        if let Some(word) = self.words().get(offset / 8) {
            super::sys::to_write(word);
        }
    }

    /// Reads the bytes at `offset` into `to`, in the manner of [`words::copy_out`].
    ///
    /// # Errors
    /// When the range is not within the region.
    #[inline]
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> Result<(), AccessError> {
        self.check(offset, to.len())?;
        words::copy_out(self.words(), offset, to);
        Ok(())
    }

    /// Writes `from` to the bytes at `offset`, in the manner of [`words::copy_in`].
    ///
    /// # Errors
    /// When the range is not within the region.
    #[inline]
    pub fn write_at(&self, offset: usize, from: &[u8]) -> Result<(), AccessError> {
        self.check(offset, from.len())?;
        words::copy_in(self.words(), offset, from);
        Ok(())
    }

    /// Copies `len` bytes at `offset` to those at `at` of `to`, which may be the same region, in
    /// the manner of [`words::copy_across`].
    ///
    /// # Errors
    /// When a range is not within its region.
    #[inline]
    pub fn copy_to(
        &self,
        offset: usize,
        to: &Region,
        at: usize,
        len: usize,
    ) -> Result<(), AccessError> {
        self.check(offset, len)?;
        to.check(at, len)?;
        words::copy_across(self.words(), offset, to.words(), at, len);
        Ok(())
    }

    /// Loads the word at `offset`, with acquire order: all that was written before the word was
    /// stored is visible then.
    ///
    /// # Errors
    /// When the offset is no multiple of 8, or the word not within the region.
    #[inline]
    pub fn load(&self, offset: usize) -> Result<u64, AccessError> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Stores the word at `offset`, with release order: a thread that loads the new value sees all
    /// earlier writes, too.
    ///
    /// # Errors
    /// When the offset is no multiple of 8, or the word not within the region.
    #[inline]
    pub fn store(&self, offset: usize, value: u64) -> Result<(), AccessError> {
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Adds to the word at `offset`, wrapping around, and returns its old value.
    ///
    /// # Errors
    /// When the offset is no multiple of 8, or the word not within the region.
    #[inline]
    pub fn fetch_add(&self, offset: usize, value: u64) -> Result<u64, AccessError> {
        Ok(self.word(offset)?.fetch_add(value, Ordering::AcqRel))
    }

    /// Sets the word at `offset` to `new` if it equals `expected`, and returns its old value. The
    /// swap took place if that equals `expected`.
    ///
    /// # Errors
    /// When the offset is no multiple of 8, or the word not within the region.
    #[inline]
    pub fn compare_swap(&self, offset: usize, expected: u64, new: u64) -> Result<u64, AccessError> {
        let word = self.word(offset)?;
        match word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(old) | Err(old) => Ok(old),
        }
    }

    /// Returns a range of the region's bytes with both of its ends.
    ///
    /// # Errors
    /// When the range is not within the region.
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<Range<usize>, AccessError> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len(),
        };
        if start > end || end > self.len() {
            let (len, region) = (end.saturating_sub(start), self.len());
            return Err(AccessError::OutOfBounds { offset: start, len, region });
        }
        Ok(start..end)
    }

    /// Checks that a range lies within the region, as it must before a byte is touched.
    #[inline]
    fn check(&self, offset: usize, len: usize) -> Result<(), AccessError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(AccessError::OutOfBounds { offset, len, region: self.len() }),
        }
    }

    #[inline]
    fn word(&self, offset: usize) -> Result<&AtomicU64, AccessError> {
        self.check(offset, 8)?;
        if !offset.is_multiple_of(8) {
            return Err(AccessError::Misaligned { offset });
        }
        Ok(&self.words()[offset / 8])
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len())
    }
}
