//! A ring between two threads: one writes at its tail, one reads at its head.
//!
//! The reader may look at values behind the head without taking them, so that a work queue keeps
//! its requests until they are complete. Each side remembers how far it last saw the other, and
//! reads the other's index, and the cache line that it is on, only when it has used up what it saw.
//!
//! The unsafe part is the slots, and the indices say whose each slot is. A slot is the writer's
//! from when the reader's head has passed it until the writer's tail passes it, and the reader's
//! otherwise.
//!
//! Both ends reach the slots by a pointer that was made of a shared reference to all of their
//! cells, so it may write, and writing by it invalidates no other copy of it, whether borrows form
//! a stack or a tree. References to a value are made of this pointer anew each time, and borrow the
//! end that they belong to, so they are over before the slot is the other end's. Only the reader
//! makes exclusive references, one at a time.
//!
//! A ring grows by a further block of slots, which takes what is written from then on. The reader
//! takes what is left in the block before, and then goes over to the next. All blocks live as long
//! as the ring does.

mod reading;
mod writing;

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use reading::{Leaving, Next};
pub(crate) use writing::{Slot, WriteBatch};

use crate::sync::{AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// A value that has a cache line for itself.
#[repr(align(64))]
struct CacheLine<T>(T);

/// The state that both ends share. The indices that one end writes and those that the other writes
/// are two cache lines apart, for processors fetch lines in pairs.
#[repr(C)]
struct Ring<T> {
    /// The blocks of slots, the oldest first, of which there is at least one.
    blocks: Mutex<Vec<SlotBlock<T>>>,
    /// How many blocks were added to the first. The count is written before the tail that first
    /// uses them.
    last_block: AtomicUsize,
    /// Whether the writing end was dropped.
    deserted: AtomicBool,
    /// How many values were ever written, modulo the word's size, like all indices here.
    tail: AtomicUsize,
    gap: CacheLine<[u8; 64]>,
    /// How many values were ever taken.
    head: AtomicUsize,
}

/// Slots for the values from an index on, up to where the next block begins.
struct SlotBlock<T> {
    from: usize,
    slots: Arc<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: a value is reached by one side at a time, as the indices say, and moves between threads.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

/// The place of the slots in memory, known to each end without a look at the shared state.
struct Slots<T> {
    first: NonNull<UnsafeCell<MaybeUninit<T>>>,
    /// The number of slots less one; the number is a power of two.
    mask: usize,
}

impl<T> Slots<T> {
    /// Returns the slot of an index. It must not be used longer than the ring lives.
    #[inline]
    fn at(&self, index: usize) -> &UnsafeCell<MaybeUninit<T>> {
        // SAFETY: the mask keeps it within the slots.
        let slot = unsafe { self.first.add(index & self.mask) };
        // SAFETY: whoever has `self` has an `Arc` of the ring beside it, which never moves or drops
        // the slots before. The reference is to a cell, beside which there may be any number.
        unsafe { slot.as_ref() }
    }
}

// SAFETY: it is a way to the ring's slots, which are as safe to share as the ring is.
unsafe impl<T: Send> Send for Slots<T> {}

/// The end of a ring that writes.
pub(crate) struct Producer<T> {
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
    /// The index of the next value to be written.
    tail: usize,
    /// The tail that the ring would have if it were full, as the reader was last seen.
    limit: usize,
    depth: usize,
}

/// The end of a ring that reads.
pub(crate) struct Consumer<T> {
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
    head: usize,
    /// The writer's tail, as last seen, or where the block of slots ends that is being read.
    tail: usize,
    /// The block that is being read.
    block: usize,
}

/// Makes a ring that holds `depth` values, and returns its two ends.
pub(crate) fn ring<T>(depth: usize) -> (Producer<T>, Consumer<T>) {
    let block = SlotBlock::new(0, depth);
    let slots = [block.slots(), block.slots()];
    let ring = Arc::new(Ring {
        blocks: Mutex::new(vec![block]),
        last_block: AtomicUsize::new(0),
        deserted: AtomicBool::new(false),
        tail: AtomicUsize::new(0),
        gap: CacheLine([0; 64]),
        head: AtomicUsize::new(0),
    });
    let [to_write, to_read] = slots;
    let producer =
        Producer { slots: to_write, ring: Arc::clone(&ring), tail: 0, limit: depth, depth };
    (producer, Consumer { slots: to_read, ring, head: 0, tail: 0, block: 0 })
}

/// Tells from any thread how many values were written to a ring.
pub(crate) struct Gauge<T>(Arc<Ring<T>>);

impl<T> Gauge<T> {
    /// How many values were ever written.
    #[inline]
    pub fn written(&self) -> usize {
        self.0.tail.load(Ordering::Acquire)
    }
}

/// A ring that holds no values, for any number of producers that are all to find it full.
pub(crate) struct EmptyRing<T>(Arc<Ring<T>>);

impl<T> EmptyRing<T> {
    pub fn new() -> Self {
        Self(ring(0).0.ring.clone())
    }

    pub fn producer(&self) -> Producer<T> {
        let ring = Arc::clone(&self.0);
        let slots = ring.blocks()[0].slots();
        Producer { slots, ring, tail: 0, limit: 0, depth: 0 }
    }
}

impl<T> SlotBlock<T> {
    /// Makes slots for at least `depth` values, from an index on.
    fn new(from: usize, depth: usize) -> Self {
        let slots = 0..depth.max(1).next_power_of_two();
        Self { from, slots: slots.map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect() }
    }

    fn slots(&self) -> Slots<T> {
        // The pointer is made of the whole slice, for one made of a single slot could reach no
        // other.
        Slots { first: NonNull::from(&*self.slots).cast(), mask: self.slots.len() - 1 }
    }
}

impl<T> Ring<T> {
    fn blocks(&self) -> MutexGuard<'_, Vec<SlotBlock<T>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Ring<T> {
    /// Drops what was not taken. If the drop of one value panics, those behind it are leaked, with
    /// all that they own; none is dropped twice.
    fn drop(&mut self) {
        let (mut at, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        let blocks = self.blocks();
        while at != tail {
            // Indices wrap around, and no two indices of a ring are half of all indices apart.
            let holds = |block: &&SlotBlock<T>| at.wrapping_sub(block.from) <= usize::MAX / 2;
            let Some(SlotBlock { slots, .. }) = blocks.iter().rev().find(holds) else { return };
            slots[at & (slots.len() - 1)].with_mut(|slot| {
                // SAFETY: both ends are gone, and what lies between the indices was not taken.
                unsafe { slot.cast::<T>().drop_in_place() };
            });
            at = at.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests;
