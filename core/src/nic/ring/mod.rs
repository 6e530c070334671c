//! A ring between two threads: one writes at its tail, one reads at its head.
//!
//! The reader may look at what stands behind the head without taking it, so that a work queue keeps
//! its requests until they are complete. Each side remembers how far it last saw the other, and
//! reads the other's index, and the cache line that it is on, only when that is used up.
//!
//! The unsafe part is the slots: the indices say whose each is. A slot is the writer's from when
//! the reader's head has passed it until the writer's tail passes it, and the reader's otherwise.
//!
//! Both ends reach the slots by a pointer that was made of a shared reference to all of their cells,
//! so it may write, and writing by it invalidates no other copy of it: neither as a stack of borrows
//! has it nor as a tree. References to a value are made of it anew each time, and borrow the end that
//! they belong to, so they are over before the slot is the other's. Only the reader makes exclusive
//! ones, one at a time.

mod reading;
mod writing;

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

pub(super) use reading::{Leaving, Next};
pub(super) use writing::{Several, Slot};

use crate::sync::{AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// A cache line.
#[repr(align(64))]
struct Line<T>(T);

/// What both ends share. What one writes and what the other does are two lines apart, for
/// processors fetch them in pairs.
#[repr(C)]
struct Ring<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Whether the end that writes is gone.
    deserted: AtomicBool,
    /// How many were ever written, modulo the word's size, like all indices here.
    tail: AtomicUsize,
    gap: Line<[u8; 64]>,
    /// How many were ever taken.
    head: AtomicUsize,
}

// SAFETY: a value is reached by one side at a time, as the indices say, and moves between threads.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

/// Where the slots are, known to each end without a look at what both share.
struct Slots<T> {
    first: NonNull<UnsafeCell<MaybeUninit<T>>>,
    /// Their number less one; it is a power of two.
    mask: usize,
}

impl<T> Slots<T> {
    /// The slot of an index. It must not be used longer than the ring lives.
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

/// The end that writes.
pub(super) struct Producer<T> {
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
    tail: usize,
    /// Where the tail would be if the ring were full, as the reader was last seen.
    limit: usize,
    depth: usize,
}

/// The end that reads.
pub(super) struct Consumer<T> {
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
    head: usize,
    /// The writer's tail, as last seen.
    tail: usize,
}

/// A ring that holds `depth` values.
pub(super) fn ring<T>(depth: usize) -> (Producer<T>, Consumer<T>) {
    let slots =
        (0..depth.max(1).next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let ring = Arc::new(Ring {
        slots: slots.collect(),
        deserted: AtomicBool::new(false),
        tail: AtomicUsize::new(0),
        gap: Line([0; 64]),
        head: AtomicUsize::new(0),
    });
    let producer =
        Producer { slots: ring.slots(), ring: Arc::clone(&ring), tail: 0, limit: depth, depth };
    (producer, Consumer { slots: ring.slots(), ring, head: 0, tail: 0 })
}

/// Looks how far the writer is, from anywhere.
pub(super) struct Gauge<T>(Arc<Ring<T>>);

impl<T> Gauge<T> {
    /// How many values were ever written.
    #[inline]
    pub fn written(&self) -> usize {
        self.0.tail.load(Ordering::Acquire)
    }
}

/// A ring that holds nothing, for any number of producers that are all to find it full.
pub(super) struct Nothing<T>(Arc<Ring<T>>);

impl<T> Nothing<T> {
    pub fn new() -> Self {
        Self(ring(0).0.ring.clone())
    }

    pub fn producer(&self) -> Producer<T> {
        let ring = Arc::clone(&self.0);
        Producer { slots: ring.slots(), ring, tail: 0, limit: 0, depth: 0 }
    }
}

impl<T> Ring<T> {
    fn slots(&self) -> Slots<T> {
        // Of the whole slice, for a pointer made of one slot reaches no other.
        Slots { first: NonNull::from(&*self.slots).cast(), mask: self.slots.len() - 1 }
    }
}

impl<T> Drop for Ring<T> {
    /// Drops what was not taken. If the drop of one value panics, those behind it are leaked, with
    /// all that they own; none is dropped twice.
    fn drop(&mut self) {
        let (mut at, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        while at != tail {
            self.slots[at & (self.slots.len() - 1)].with_mut(|slot| {
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
