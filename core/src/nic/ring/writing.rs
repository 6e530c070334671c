//! The end of a ring that writes: a slot at a time, or a batch that is handed over at once.

use std::mem::MaybeUninit;

use super::{Producer, SlotBlock};
use crate::sync::{Ordering, UnsafeCell};

impl<T> Producer<T> {
    /// How many values the ring holds.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Makes the ring hold `depth` values, if it holds fewer. What is written from now on goes to
    /// other slots, and costs as much as before.
    #[cold]
    pub fn grow(&mut self, depth: usize) {
        if depth <= self.depth {
            return;
        }
        let block = SlotBlock::new(self.tail, depth);
        self.slots = block.slots();
        let mut blocks = self.ring.blocks();
        blocks.push(block);
        let grown = blocks.len() - 1;
        drop(blocks);
        // This store comes before that of the tail of what is written there: a reader that sees
        // that tail sees the block.
        self.ring.last_block.store(grown, Ordering::Release);
        self.depth = depth;
        self.refresh();
    }

    /// How many more values there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        let head = self.ring.head.load(Ordering::Acquire);
        self.depth - self.tail.wrapping_sub(head)
    }

    /// How many values there was room for when the reader was last looked at: perhaps there is more
    /// room now.
    #[inline]
    pub fn known_room(&self) -> usize {
        self.limit.wrapping_sub(self.tail)
    }

    /// Reads how far the reader is.
    #[inline]
    pub fn refresh(&mut self) {
        self.limit = self.ring.head.load(Ordering::Acquire).wrapping_add(self.depth);
    }

    /// Returns the slot to be written next, unless the ring is full. The caller can build a value
    /// in its slot, with nothing left that may fail.
    #[inline]
    pub fn slot(&mut self) -> Option<Slot<'_, T>> {
        if self.known_room() == 0 {
            self.refresh();
            if self.known_room() == 0 {
                return None;
            }
        }
        Some(Slot { producer: self })
    }

    /// Returns the slot to be written next, if there is room for more than `others` values.
    #[inline(always)]
    pub fn slot_beside(&mut self, others: usize) -> Option<Slot<'_, T>> {
        if self.known_room() <= others {
            self.refresh();
            if self.known_room() <= others {
                return None;
            }
        }
        Some(Slot { producer: self })
    }

    /// Begins a batch of several values.
    #[inline(always)]
    pub fn write_batch(&mut self) -> WriteBatch<'_, T> {
        WriteBatch { tail: self.tail, producer: self }
    }

    /// Writes a value, unless the ring is full.
    #[cfg(test)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        match self.slot() {
            Some(slot) => {
                slot.fill(value);
                Ok(())
            }
            None => Err(value),
        }
    }
}

/// A slot that the writing end may fill.
pub(crate) struct Slot<'a, T> {
    producer: &'a mut Producer<T>,
}

impl<'a, T> Slot<'a, T> {
    /// Writes a value, and hands it to the reader.
    #[inline(always)]
    pub fn fill(self, value: T) {
        self.write(value).hand_over();
    }

    /// Writes a value, which the reader does not see yet.
    #[inline(always)]
    pub fn write(self, value: T) -> Written<'a, T> {
        let producer = self.producer;
        producer.slots.at(producer.tail).with_mut(|slot| {
            // SAFETY: fewer than the ring's length were between head and tail when this was made,
            // and nothing was written since, so the slot holds no value, and the reader does not
            // touch it before the tail has passed it.
            unsafe { (*slot).write(value) };
        });
        Written { producer }
    }
}

/// A value that was written, and is the reader's when it is handed over.
#[must_use = "what nobody is handed is lost"]
pub(crate) struct Written<'a, T> {
    producer: &'a mut Producer<T>,
}

impl<T> Written<'_, T> {
    /// Hands the value to the reader.
    #[inline(always)]
    pub fn hand_over(self) {
        let producer = self.producer;
        producer.tail = producer.tail.wrapping_add(1);
        producer.ring.tail.store(producer.tail, Ordering::Release);
    }
}

/// Values that are being written. The reader is handed all at once when this value is dropped.
pub(crate) struct WriteBatch<'a, T> {
    producer: &'a mut Producer<T>,
    tail: usize,
}

impl<T> WriteBatch<'_, T> {
    /// Hands the values to the reader. Returns how many they are.
    #[inline(always)]
    pub fn finish(self) -> usize {
        self.tail.wrapping_sub(self.producer.tail)
    }

    /// Returns the slot to be written next.
    ///
    /// # Panics
    /// When the ring is full.
    #[inline(always)]
    pub fn slot(&mut self) -> NextSlot<'_, T> {
        let Self { producer, tail } = self;
        if *tail == producer.limit {
            producer.refresh();
            assert!(*tail != producer.limit, "whoever has more to write has asked for room");
        }
        NextSlot { slot: producer.slots.at(*tail), tail }
    }
}

/// A slot of a batch that the writing end may fill.
pub(crate) struct NextSlot<'a, T> {
    slot: &'a UnsafeCell<MaybeUninit<T>>,
    tail: &'a mut usize,
}

impl<T> NextSlot<'_, T> {
    /// Writes a value into the slot.
    #[inline(always)]
    pub fn fill(self, value: T) {
        self.slot.with_mut(|slot| {
            // SAFETY: the ring was not full up to this tail when this was made, so the slot holds
            // no value, and the reader does not touch it before it is handed over.
            unsafe { (*slot).write(value) };
        });
        *self.tail = self.tail.wrapping_add(1);
    }
}

impl<T> Drop for WriteBatch<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.producer.tail = self.tail;
        self.producer.ring.tail.store(self.tail, Ordering::Release);
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // This store comes after that of the last tail: a reader that sees this sees that tail. The
        // count of the `Arc` would say as much, but without an order that anybody promises. And to
        // ask for the only reference to the ring would invalidate the pointer of `Slots`, which was
        // made of a shared reference.
        self.ring.deserted.store(true, Ordering::Release);
    }
}
