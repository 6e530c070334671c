//! The allocation of a region's words, with its reference count.
//!
//! A handle reaches the words by a raw pointer to the whole allocation, which is made together with
//! it and which no reference outlives or invalidates. Each access makes references from the pointer
//! that end with the access. These are shared references to atomics, of which there may be many, and
//! through which words may be written. Exclusive references, and references that promise that nobody
//! writes, are made only for [private epochs](crate::memory::region_sys).

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::sync::AtomicU64;

/// A reference-counted allocation of words, which exist for as long as a handle does: a pointer to
/// the words, and the count.
#[derive(Clone)]
pub(in crate::memory) struct Allocation {
    first: NonNull<AtomicU64>,
    /// The length in bytes. Of the last word, perhaps only a part belongs to the region.
    len: usize,
    #[cfg_attr(loom, allow(dead_code))]
    owner: Arc<Owner>,
}

/// Returns the number of words that `len` bytes take.
#[inline]
pub(in crate::memory) const fn words(len: usize) -> usize {
    #[expect(clippy::manual_div_ceil, reason = "it provides for a length that no memory has")]
    let words = (len + 7) / 8;
    words
}

/// The owner of the words, which is dropped with the last handle.
enum Owner {
    Heap { _keeps: Heap },
    Foreign { _keeps: Box<dyn Send + Sync> },
}

/// A heap allocation by pointer. A `Box` would promise that no other pointer leads there.
struct Heap(NonNull<[AtomicU64]>);

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and all that could reach the words held this value.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: a box of atomics is `Send` and `Sync`, and this is such a box.
unsafe impl Send for Heap {}
// SAFETY: a box of atomics is `Send` and `Sync`, and this is such a box.
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

impl Allocation {
    /// Allocates memory of zeros.
    ///
    /// As a rule, the allocator gets large memory from the system, which provides a page at its first
    /// use. So memory that is never written takes only addresses.
    pub fn new(len: usize) -> Self {
        let words = NonNull::from(Box::leak(zeros(len.div_ceil(8))));
        Self { first: words.cast(), len, owner: Arc::new(Owner::Heap { _keeps: Heap(words) }) }
    }

    /// Takes foreign memory, which `owner` keeps: it is dropped with the last handle.
    ///
    /// # Safety
    /// From `first` on, the words of `len` bytes exist, and are reached by atomic accesses only, until
    /// `owner` is dropped, wherever it is moved.
    pub unsafe fn foreign(
        first: NonNull<AtomicU64>,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        Self { first, len, owner: Arc::new(Owner::Foreign { _keeps: Box::new(owner) }) }
    }

    /// Returns where the words begin.
    #[cfg(not(loom))]
    #[inline]
    pub fn first(&self) -> NonNull<AtomicU64> {
        self.first
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the constructors guarantee that so many words exist for as long as the owner does,
        // which is at least as long as `self`.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), words(self.len)) }
    }

    /// Whether no other handle leads to the words, and no pointer but handles does.
    #[cfg(not(loom))]
    pub fn is_alone(&mut self) -> bool {
        // `get_mut` has acquire order, and each drop of a handle has release order.
        matches!(Arc::get_mut(&mut self.owner), Some(Owner::Heap { .. }))
    }

    /// Returns how many other handles there are at this moment.
    #[cfg(not(loom))]
    pub fn others(&self) -> usize {
        Arc::strong_count(&self.owner) - 1
    }

    /// Whether the words are foreign memory.
    #[cfg(not(loom))]
    pub fn is_foreign(&self) -> bool {
        matches!(*self.owner, Owner::Foreign { .. })
    }
}

// SAFETY: the pointer leads to atomics, which any thread may use, and any thread may drop the owner.
unsafe impl Send for Allocation {}
// SAFETY: through a shared reference, the pointer leads to atomics, which any thread may use.
unsafe impl Sync for Allocation {}
