//! The end of a ring that reads: it looks at values, and takes them one at a time or in batches.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Consumer, Gauge, Slot};
use crate::sync::Ordering;

impl<T> Consumer<T> {
    /// Whether the writing end was dropped: then all that it wrote is seen, and nothing more comes.
    pub fn is_deserted(&self) -> bool {
        self.ring.deserted.load(Ordering::Acquire)
    }

    /// How many values were ever taken.
    #[inline]
    pub fn taken(&self) -> usize {
        self.head
    }

    /// Returns a gauge that tells how many values were written, while another thread reads.
    pub fn gauge(&self) -> Gauge<T> {
        Gauge(Arc::clone(&self.ring))
    }

    /// How many values stand in the ring.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.ring.tail.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Returns the value that stands behind `index` others, and leaves it in the ring.
    #[inline]
    pub fn peek(&mut self, index: usize) -> Option<&T> {
        if index >= self.tail.wrapping_sub(self.head) {
            self.refresh();
        }
        self.seen(index)
    }

    /// Reads how far the writer is.
    #[inline]
    pub fn refresh(&mut self) {
        self.tail = self.ring.tail.load(Ordering::Acquire);
        if self.ring.last_block.load(Ordering::Relaxed) != self.block {
            self.enter_next_block();
        }
    }

    /// Goes over to the next block of slots, if all values of the present one were taken. Otherwise
    /// only the rest of the present block is seen.
    #[cold]
    fn enter_next_block(&mut self) {
        let blocks = self.ring.blocks();
        while let Some(next) = blocks.get(self.block + 1) {
            let left = next.from.wrapping_sub(self.head);
            if left > 0 {
                if self.tail.wrapping_sub(self.head) > left {
                    self.tail = next.from;
                }
                return;
            }
            self.slots = next.slots();
            self.block += 1;
        }
    }

    /// How many values were seen behind `index` others.
    #[inline]
    pub fn seen_behind(&self, index: usize) -> usize {
        self.tail.wrapping_sub(self.head).saturating_sub(index)
    }

    /// Returns the value that was seen behind `index` others, and leaves it in the ring.
    #[inline]
    pub fn seen(&self, index: usize) -> Option<&T> {
        if index >= self.tail.wrapping_sub(self.head) {
            return None;
        }
        let at = self.head.wrapping_add(index);
        // SAFETY: the slot is between head and tail, so it holds a value, which the writer leaves
        // alone until the head has passed it; and the head can't pass while `self` is borrowed.
        Some(self.slots.at(at).with(|slot| unsafe { &*slot.cast::<T>() }))
    }

    /// Iterates over the values that were seen at these positions behind the head, and leaves them
    /// in the ring.
    #[inline(always)]
    pub fn seen_range(&self, part: Range<usize>) -> impl Iterator<Item = &T> {
        let (first, mask, head) = (self.slots.first, self.slots.mask, self.head);
        let end = part.end.min(self.seen_behind(0));
        (head.wrapping_add(part.start)..head.wrapping_add(end)).map(move |at| {
            // SAFETY: the mask keeps it within the slots.
            let slot = unsafe { first.add(at & mask) };
            // SAFETY: it is as in `Slots::at`; a copy of where the slots are does as well, while
            // `self` is borrowed.
            let slot = unsafe { slot.as_ref() };
            // SAFETY: it is as in `seen`.
            slot.with(|slot| unsafe { &*slot.cast::<T>() })
        })
    }

    /// Returns the value that was seen behind `index` others, and leaves it in the ring.
    pub fn seen_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.tail.wrapping_sub(self.head) {
            return None;
        }
        let at = self.head.wrapping_add(index);
        // SAFETY: it is as in `seen`, and `self` is borrowed such that there is no other reference.
        Some(self.slots.at(at).with_mut(|slot| unsafe { &mut *slot.cast::<T>() }))
    }

    /// Returns the value at the head, and leaves it in the ring.
    #[inline]
    pub fn front(&mut self) -> Option<&mut T> {
        if self.head == self.tail {
            self.refresh();
            if self.head == self.tail {
                return None;
            }
        }
        // SAFETY: the slot holds a value, which is the reader's until the head passes it; and the
        // head can't pass while `self` is borrowed.
        Some(self.slots.at(self.head).with_mut(|slot| unsafe { &mut *slot.cast::<T>() }))
    }

    /// Returns the value at the head such that it may be taken after a look.
    #[inline(always)]
    pub fn head(&mut self) -> Option<Head<'_, T>> {
        let value = NonNull::from(self.front()?);
        Some(Head { consumer: self, value })
    }

    /// Drops the value at the head, where it is, if there is one.
    #[inline]
    pub fn drop_front(&mut self) {
        if let Some(head) = self.head() {
            head.drop();
        }
    }

    /// Takes the value at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.head().map(Head::take)
    }

    /// Takes several of the values that were seen, at `most` so many.
    #[inline(always)]
    pub fn read_batch(&mut self, most: usize) -> ReadBatch<'_, T> {
        let end = self.head.wrapping_add(most.min(self.seen_behind(0)));
        ReadBatch { head: self.head, end, consumer: self }
    }

    /// Moves the head past a slot.
    #[inline]
    fn pass(&mut self) {
        self.head = self.head.wrapping_add(1);
        self.ring.head.store(self.head, Ordering::Release);
    }
}

/// Values that are taken one after another. Their slots are given back all at once when this value
/// is dropped.
pub(crate) struct ReadBatch<'a, T> {
    consumer: &'a mut Consumer<T>,
    head: usize,
    /// The end of the batch, at most the writer's tail as last seen.
    end: usize,
}

impl<T> ReadBatch<'_, T> {
    /// Gives the slots back. Returns how many values were taken.
    #[inline(always)]
    pub fn finish(self) -> usize {
        self.head.wrapping_sub(self.consumer.head)
    }

    /// The next value, if there is one.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Next<'_, T>> {
        if self.head == self.end {
            return None;
        }
        // SAFETY: the slot holds a value, which is the reader's until the head passes it; and what
        // is returned borrows this, by which alone the head can pass.
        let value =
            self.consumer.slots.at(self.head).with_mut(|slot| unsafe { &mut *slot.cast::<T>() });
        Some(Next { head: &mut self.head, value })
    }
}

/// The value of a batch that is next to be taken.
pub(crate) struct Next<'a, T> {
    head: &'a mut usize,
    value: &'a mut T,
}

impl<T> Next<'_, T> {
    /// Goes past the value, which is left in its slot and not dropped: it must have nothing left
    /// that a drop would free.
    #[inline(always)]
    pub fn pass(self) {
        *self.head = self.head.wrapping_add(1);
    }
}

impl<T> Deref for Next<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Next<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for ReadBatch<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.consumer.head = self.head;
        self.consumer.ring.head.store(self.head, Ordering::Release);
    }
}

/// The value at the head of a ring: it was found there once, and need not be looked for again to be
/// taken.
pub(crate) struct Head<'a, T> {
    consumer: &'a mut Consumer<T>,
    value: NonNull<T>,
}

impl<'a, T> Head<'a, T> {
    /// Takes the value out of the ring.
    #[inline(always)]
    pub fn take(self) -> T {
        // SAFETY: the slot holds a value, and the head passes it in any case: it is read once.
        let value = unsafe { self.value.read() };
        let _passed = Passed(self.consumer);
        value
    }

    /// Moves the value to a slot of another ring, as something else that is made of it. A thread
    /// that finds it there finds room here. The value is moved once, and not twice.
    #[inline(always)]
    pub fn move_to<U>(self, slot: Slot<'_, U>, make: impl FnOnce(T) -> U) {
        let written = {
            // SAFETY: the slot holds a value, and the head passes it in any case: it is read once.
            let value = unsafe { self.value.read() };
            let _passed = Passed(self.consumer);
            slot.write(make(value))
        };
        written.hand_over();
    }

    /// Returns a reference to the value, which stays at the head.
    #[inline(always)]
    pub fn stay(self) -> &'a T {
        // SAFETY: the slot holds a value, which nobody takes while the reader is borrowed.
        unsafe { self.value.as_ref() }
    }

    /// Drops the value where it is.
    #[inline(always)]
    pub fn drop(self) {
        self.leaving();
    }

    /// Returns the value such that it is dropped where it is when the caller is done with it.
    #[inline(always)]
    pub fn leaving(self) -> Leaving<'a, T> {
        Leaving(self)
    }
}

/// Moves the head past a slot when this value is dropped.
struct Passed<'a, T>(&'a mut Consumer<T>);

impl<T> Drop for Passed<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.pass();
    }
}

/// The value at the head of a ring, which leaves the ring when this is dropped.
pub(crate) struct Leaving<'a, T>(Head<'a, T>);

impl<T> Drop for Leaving<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // The head passes the slot even if the value's own drop panics. Otherwise whoever takes the
        // next value, or drops the ring, would drop this value again.
        let _passed = Passed(self.0.consumer);
        // SAFETY: the head passes the slot in any case, so this is the last that is seen of the
        // value.
        unsafe { self.0.value.drop_in_place() };
    }
}

impl<T> Deref for Leaving<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Leaving<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Leaving<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for Head<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot holds a value, which is the reader's until the head passes it, and the
        // head can't pass while this is there.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Head<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.value.as_mut() }
    }
}
