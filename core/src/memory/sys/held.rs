//! Where a region's words are, and what keeps them there.
//!
//! A handle reaches the words by a raw pointer, which no reference outlives or invalidates: it is
//! made when the memory is, of all of it, and each access makes references of it that end with the
//! access. References to the words are to atomics, which may be many and may write; exclusive ones,
//! and such as promise that nobody writes, are made for [epochs](super::epochs) alone.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::sync::AtomicU64;

/// Words that are there for as long as this is: two processor words to reach them by, and a count.
#[derive(Clone)]
pub(in crate::memory) struct Held {
    pub(super) first: NonNull<AtomicU64>,
    /// The length in bytes; of the last word, perhaps only a part belongs to the region.
    pub(super) len: usize,
    #[cfg_attr(loom, allow(dead_code))]
    pub(super) owner: Arc<Owner>,
}

/// How many words there are where there are so many bytes.
#[inline]
pub(super) const fn words(len: usize) -> usize {
    #[expect(clippy::manual_div_ceil, reason = "it provides for a length that no memory has")]
    let words = (len + 7) / 8;
    words
}

/// Dropped with the last handle, and otherwise looked at by nobody.
pub(super) enum Owner {
    Heap { _keeps: Heap },
    Foreign { _keeps: Box<dyn Send + Sync> },
}

/// An allocation, by pointer: a `Box` would say that it alone leads there.
pub(super) struct Heap(NonNull<[AtomicU64]>);

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

#[cfg(not(loom))]
fn zeros(count: usize) -> Box<[AtomicU64]> {
    let words = Box::new_zeroed_slice(count);
    // SAFETY: a word of zero bits is an atomic word that holds zero.
    unsafe { words.assume_init() }
}

#[cfg(loom)]
fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

impl Held {
    /// Makes memory of zeros.
    ///
    /// The allocator has them from the system as a rule, which makes a page when it is used first:
    /// memory that is never written takes addresses alone.
    pub fn new(len: usize) -> Self {
        let words = NonNull::from(Box::leak(zeros(len.div_ceil(8))));
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

    /// Tells whether this is the only handle of the memory, and nothing but handles leads to its
    /// words.
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
