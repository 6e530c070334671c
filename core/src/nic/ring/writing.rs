//! The end that writes: a slot at a time, or several that are handed over at once.

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
        let stretch = SlotBlock::new(self.tail, depth);
        self.slots = stretch.slots();
        let mut stretches = self.ring.stretches();
        stretches.push(stretch);
        let grown = stretches.len() - 1;
        drop(stretches);
        // Before the tail of what is written there: who sees that sees this.
        self.ring.grown.store(grown, Ordering::Release);
        self.depth = depth;
        self.look();
    }

    /// How many more there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        let head = self.ring.head.load(Ordering::Acquire);
        self.depth - self.tail.wrapping_sub(head)
    }

    /// How many there was room for when the reader was last looked at: perhaps there is more.
    #[inline]
    pub fn known_room(&self) -> usize {
        self.limit.wrapping_sub(self.tail)
    }

    /// Looks how far the reader is.
    #[inline]
    pub fn look(&mut self) {
        self.limit = self.ring.head.load(Ordering::Acquire).wrapping_add(self.depth);
    }

    /// The slot to be written next, unless the ring is full. Whoever has it can build a value where
    /// it is to be, with nothing left that may fail.
    #[inline]
    pub fn slot(&mut self) -> Option<Slot<'_, T>> {
        if self.known_room() == 0 {
            self.look();
            if self.known_room() == 0 {
                return None;
            }
        }
        Some(Slot { producer: self })
    }

    /// The slot to be written next, if there is room for more than so many values.
    #[inline(always)]
    pub fn slot_beside(&mut self, others: usize) -> Option<Slot<'_, T>> {
        if self.known_room() <= others {
            self.look();
            if self.known_room() <= others {
                return None;
            }
        }
        Some(Slot { producer: self })
    }

    /// For whoever has several values to write.
    #[inline(always)]
    pub fn several(&mut self) -> WriteBatch<'_, T> {
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

/// A slot that is the writer's.
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
    /// Hands it to the reader.
    #[inline(always)]
    pub fn hand_over(self) {
        let producer = self.producer;
        producer.tail = producer.tail.wrapping_add(1);
        producer.ring.tail.store(producer.tail, Ordering::Release);
    }
}

/// Values that are being written, which the reader is handed all at once when this is dropped.
pub(crate) struct WriteBatch<'a, T> {
    producer: &'a mut Producer<T>,
    tail: usize,
}

impl<T> WriteBatch<'_, T> {
    /// Hands them to the reader. How many they are.
    #[inline(always)]
    pub fn hand_over(self) -> usize {
        self.tail.wrapping_sub(self.producer.tail)
    }

    /// The slot to be written next.
    ///
    /// # Panics
    /// When the ring is full.
    #[inline(always)]
    pub fn slot(&mut self) -> NextSlot<'_, T> {
        let Self { producer, tail } = self;
        if *tail == producer.limit {
            producer.look();
            assert!(*tail != producer.limit, "whoever has more to write has asked for room");
        }
        NextSlot { slot: producer.slots.at(*tail), tail }
    }
}

/// A slot of several that are the writer's.
pub(crate) struct NextSlot<'a, T> {
    slot: &'a UnsafeCell<MaybeUninit<T>>,
    tail: &'a mut usize,
}

impl<T> NextSlot<'_, T> {
    /// Writes a value.
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
        // Behind the last tail: who sees this sees that. The count of the `Arc` would say as much,
        // but without an order that anybody promises; and to ask for the only reference to the
        // ring would end what `Slots` may reach, which stems from a shared one.
        self.ring.deserted.store(true, Ordering::Release);
    }
}
