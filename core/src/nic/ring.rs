//! A ring between two threads: one writes at its tail, one reads at its head.
//!
//! The reader may look at what stands behind the head without taking it, so that a work queue keeps
//! its requests until they are complete. Each side remembers how far it last saw the other, and
//! reads the other's index, and the cache line that it is on, only when that is used up.
//!
//! The unsafe part is the slots: the indices say whose each is. A slot is the writer's from when
//! the reader's head has passed it until the writer's tail passes it, and the reader's otherwise.

#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicUsize, Ordering, UnsafeCell};

/// A cache line.
#[repr(align(64))]
struct Line<T>(T);

/// What both ends share. What one writes and what the other does are two lines apart, for processors
/// fetch them in pairs.
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
        // SAFETY: the mask keeps it within the slots, and whoever has `self` has an `Arc` of the
        // ring beside it, which never moves or drops them before.
        unsafe { self.first.add(index & self.mask).as_ref() }
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

impl<T> Producer<T> {
    /// How many values the ring holds.
    pub fn depth(&self) -> usize {
        self.depth
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
    pub fn several(&mut self) -> Several<'_, T> {
        Several { tail: self.tail, producer: self }
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
pub(super) struct Slot<'a, T> {
    producer: &'a mut Producer<T>,
}

impl<T> Slot<'_, T> {
    /// Writes a value, and hands it to the reader.
    #[inline(always)]
    pub fn fill(self, value: T) {
        let producer = self.producer;
        producer.slots.at(producer.tail).with_mut(|slot| {
            // SAFETY: fewer than the ring's length were between head and tail when this was made,
            // and nothing was written since, so the slot holds no value, and the reader does not
            // touch it before the tail has passed it.
            unsafe { (*slot).write(value) };
        });
        producer.tail = producer.tail.wrapping_add(1);
        producer.ring.tail.store(producer.tail, Ordering::Release);
    }
}

/// Values that are being written, which the reader is handed all at once when this is dropped.
pub(super) struct Several<'a, T> {
    producer: &'a mut Producer<T>,
    tail: usize,
}

impl<T> Several<'_, T> {
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
pub(super) struct NextSlot<'a, T> {
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

impl<T> Drop for Several<'_, T> {
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

impl<T> Consumer<T> {
    /// Whether the end that writes is gone: then all that it wrote is seen, and there will be no
    /// more.
    pub fn is_deserted(&self) -> bool {
        self.ring.deserted.load(Ordering::Acquire)
    }

    /// How many values were ever taken.
    #[inline]
    pub fn taken(&self) -> usize {
        self.head
    }

    /// What looks how far the writer is while another reads.
    pub fn gauge(&self) -> Gauge<T> {
        Gauge(Arc::clone(&self.ring))
    }

    /// How many values stand in the ring.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.ring.tail.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// The value that stands behind `index` others, left where it is.
    #[inline]
    pub fn peek(&mut self, index: usize) -> Option<&T> {
        if index >= self.tail.wrapping_sub(self.head) {
            self.look();
        }
        self.seen(index)
    }

    /// Looks how far the writer is.
    #[inline]
    pub fn look(&mut self) {
        self.tail = self.ring.tail.load(Ordering::Acquire);
    }

    /// How many were seen behind `index` others.
    #[inline]
    pub fn seen_behind(&self, index: usize) -> usize {
        self.tail.wrapping_sub(self.head).saturating_sub(index)
    }

    /// What was seen behind `index` others, left where it is.
    #[inline]
    pub fn seen(&self, index: usize) -> Option<&T> {
        if index >= self.tail.wrapping_sub(self.head) {
            return None;
        }
        let at = self.head.wrapping_add(index);
        // SAFETY: the slot is between head and tail, so it holds a value, which the writer leaves
        // alone until the head has passed it; and the head can't pass while `self` is borrowed.
        Some(self.slots.at(at).with(|slot| unsafe { (*slot).assume_init_ref() }))
    }

    /// What was seen in that part of the ring, the head being 0, left where it is.
    #[inline(always)]
    pub fn seen_part(&self, part: Range<usize>) -> impl Iterator<Item = &T> {
        let (first, mask, head) = (self.slots.first, self.slots.mask, self.head);
        let end = part.end.min(self.seen_behind(0));
        (head.wrapping_add(part.start)..head.wrapping_add(end)).map(move |at| {
            // SAFETY: it is as in `at`; a copy of where the slots are does as well, while `self` is
            // borrowed.
            let slot = unsafe { first.add(at & mask).as_ref() };
            // SAFETY: it is as in `seen`.
            slot.with(|slot| unsafe { (*slot).assume_init_ref() })
        })
    }

    /// The value at the head, left where it is.
    #[inline]
    pub fn front(&mut self) -> Option<&mut T> {
        if self.head == self.tail {
            self.look();
            if self.head == self.tail {
                return None;
            }
        }
        // SAFETY: the slot holds a value, which is the reader's until the head passes it; and the
        // head can't pass while `self` is borrowed.
        Some(self.slots.at(self.head).with_mut(|slot| unsafe { (*slot).assume_init_mut() }))
    }

    /// The value at the head, for whoever may take it after a look.
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

    /// For whoever takes several values, at `most` so many, of those that were seen.
    #[inline(always)]
    pub fn passing(&mut self, most: usize) -> Passing<'_, T> {
        let end = self.head.wrapping_add(most.min(self.seen_behind(0)));
        Passing { head: self.head, end, consumer: self }
    }

    #[inline]
    fn pass(&mut self) {
        self.head = self.head.wrapping_add(1);
        self.ring.head.store(self.head, Ordering::Release);
    }
}

/// Values that are taken one after another, and whose slots are left all at once when this is
/// dropped.
pub(super) struct Passing<'a, T> {
    consumer: &'a mut Consumer<T>,
    head: usize,
    /// At most the writer's tail as last seen.
    end: usize,
}

impl<T> Passing<'_, T> {
    /// Leaves their slots. How many they are.
    #[inline(always)]
    pub fn leave(self) -> usize {
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
            self.consumer.slots.at(self.head).with_mut(|slot| unsafe { (*slot).assume_init_mut() });
        Some(Next { head: &mut self.head, value })
    }
}

/// The value that is next to be taken.
pub(super) struct Next<'a, T> {
    head: &'a mut usize,
    value: &'a mut T,
}

impl<T> Next<'_, T> {
    /// Goes past the value. It is left where it is and not dropped: it is to have nothing left that
    /// would have to be.
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

impl<T> Drop for Passing<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.consumer.head = self.head;
        self.consumer.ring.head.store(self.head, Ordering::Release);
    }
}

/// The value at the head of a ring: it was found there once, and need not be again to be taken.
pub(super) struct Head<'a, T> {
    consumer: &'a mut Consumer<T>,
    value: NonNull<T>,
}

impl<'a, T> Head<'a, T> {
    /// Takes the value.
    #[inline(always)]
    pub fn take(self) -> T {
        self.take_as(|value| value)
    }

    /// Takes the value as something else, which is made of it before the slot is left: so it is
    /// moved once, and not twice.
    #[inline(always)]
    pub fn take_as<R>(self, make: impl FnOnce(T) -> R) -> R {
        // SAFETY: the slot holds a value, and the head passes it in any case: it is read once.
        let value = unsafe { self.value.read() };
        let _passed = Passed(self.consumer);
        make(value)
    }

    /// Drops the value where it is.
    #[inline(always)]
    pub fn drop(self) {
        self.leaving();
    }

    /// The value, to be dropped where it is when whoever has this is done with it.
    #[inline(always)]
    pub fn leaving(self) -> Leaving<'a, T> {
        Leaving(self)
    }
}

/// Has the head pass a slot when it is dropped.
struct Passed<'a, T>(&'a mut Consumer<T>);

impl<T> Drop for Passed<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.pass();
    }
}

/// The value at the head of a ring, which is dropped when this is.
pub(super) struct Leaving<'a, T>(Head<'a, T>);

impl<T> Drop for Leaving<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the head passes the slot now, so this is the last that is seen of the value.
        unsafe { self.0.value.drop_in_place() };
        self.0.consumer.pass();
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

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (mut at, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        while at != tail {
            self.slots[at & (self.slots.len() - 1)].with_mut(|slot| {
                // SAFETY: both ends are gone, and what lies between the indices was not taken.
                unsafe { (*slot).assume_init_drop() };
            });
            at = at.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn several_values_are_handed_over_and_left_at_once() {
        let (mut producer, mut consumer) = ring(3);
        for round in 0..5 {
            let mut several = producer.several();
            for value in 0..3 {
                several.slot().fill(round * 3 + value);
            }
            assert_eq!(consumer.waiting(), 0);
            assert_eq!((several.hand_over(), consumer.waiting()), (3, 3));
            consumer.look();
            let mut passing = consumer.passing(2);
            for value in 0..2 {
                let next = passing.next().expect("three were seen");
                assert_eq!(*next, round * 3 + value);
                next.pass();
            }
            assert!(passing.next().is_none());
            assert_eq!((passing.leave(), producer.room()), (2, 2));
            assert_eq!(consumer.pop(), Some(round * 3 + 2));
        }
    }

    #[test]
    #[should_panic(expected = "has asked for room")]
    fn there_is_no_slot_beyond_the_last() {
        let (mut producer, _consumer) = ring(1);
        let mut several = producer.several();
        several.slot().fill(1);
        several.slot().fill(2);
    }

    #[test]
    fn values_come_out_as_they_went_in_and_may_be_looked_at_before() {
        let (mut producer, mut consumer) = ring(3);
        assert_eq!((consumer.pop(), consumer.peek(0)), (None::<u32>, None));
        for round in 0..10 {
            for value in 0..3 {
                assert_eq!(producer.push(round * 3 + value), Ok(()));
            }
            assert_eq!((producer.push(99), producer.room()), (Err(99), 0));
            assert_eq!(consumer.peek(2), Some(&(round * 3 + 2)));
            assert_eq!(consumer.peek(3), None);
            for value in 0..3 {
                assert_eq!(
                    (consumer.waiting(), consumer.pop()),
                    (3 - value, Some(round * 3 + value as u32))
                );
            }
        }
    }

    #[test]
    fn what_was_not_taken_is_dropped_once() {
        let value = Arc::new(());
        let (mut producer, mut consumer) = ring(4);
        for _ in 0..4 {
            producer.push(Arc::clone(&value)).expect("room");
        }
        drop(consumer.pop());
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn of_what_was_seen_a_part_is_looked_at_in_order() {
        let (mut producer, mut consumer) = ring(4);
        // So far that the part goes around the end of the slots.
        for value in 0..3 {
            producer.push(value).expect("room");
            assert_eq!(consumer.pop(), Some(value));
        }
        (3..6).for_each(|value| producer.push(value).expect("room"));
        assert_eq!(consumer.seen_part(0..3).count(), 0, "it was not looked");
        consumer.look();
        assert!(consumer.seen_part(1..9).eq(&[4, 5]));
        assert_eq!(consumer.seen_part(3..9).count(), 0);
    }

    #[test]
    fn a_value_of_which_nothing_could_be_made_is_taken_once() {
        let value = Arc::new(());
        let (mut producer, mut consumer) = ring(2);
        producer.push(Arc::clone(&value)).expect("room");
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            consumer.head().map(|head| head.take_as(|_| panic!("as it is to")))
        }));
        assert!(made.is_err());
        assert_eq!((Arc::strong_count(&value), consumer.pop().is_none()), (1, true));
    }

    #[test]
    fn a_ring_is_deserted_when_the_end_that_writes_is_dropped() {
        let (mut producer, mut consumer) = ring(2);
        producer.push(7).expect("room");
        assert!(!consumer.is_deserted());
        drop(producer);
        assert!(consumer.is_deserted());
        assert_eq!((consumer.pop(), consumer.pop()), (Some(7), None));
    }

    #[test]
    fn two_threads_lose_nothing() {
        let (mut producer, mut consumer) = ring(5);
        let writer = std::thread::spawn(move || {
            for mut value in (0..100_000u64).map(Box::new) {
                while let Err(back) = producer.push(value) {
                    value = back;
                    std::hint::spin_loop();
                }
            }
        });
        let mut next = 0;
        while next < 100_000 {
            match consumer.pop() {
                Some(value) => {
                    assert_eq!(*value, next);
                    next += 1;
                }
                None => std::hint::spin_loop(),
            }
        }
        writer.join().expect("the writer");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;

    #[test]
    fn a_value_is_whole_and_its_slot_is_used_again() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(1);
            let writer = thread::spawn(move || {
                let mut pushed = 0;
                for _ in 0..3 {
                    pushed += u64::from(producer.push(Box::new(pushed)).is_ok());
                }
                pushed
            });
            let mut taken = 0;
            for _ in 0..3 {
                if let Some(seen) = consumer.peek(0).map(|value| **value) {
                    assert_eq!(seen, taken);
                    assert_eq!(consumer.pop(), Some(Box::new(taken)));
                    taken += 1;
                }
            }
            let pushed = writer.join().unwrap();
            while let Some(value) = consumer.pop() {
                assert_eq!(*value, taken);
                taken += 1;
            }
            assert_eq!(pushed, taken);
        });
    }

    /// Fails if either end is told of, or heard, with a weaker order.
    #[test]
    fn several_values_are_whole_and_their_slots_are_used_again() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                let mut pushed = 0;
                for _ in 0..2 {
                    let room = producer.room();
                    let mut several = producer.several();
                    for value in pushed..pushed + room {
                        several.slot().fill(Some(Box::new(value)));
                    }
                    pushed += several.hand_over();
                }
                pushed
            });
            let mut taken = 0;
            for _ in 0..2 {
                consumer.look();
                let mut passing = consumer.passing(2);
                while let Some(mut next) = passing.next() {
                    assert_eq!(next.take(), Some(Box::new(taken)));
                    taken += 1;
                    next.pass();
                }
            }
            let pushed = writer.join().unwrap();
            assert_eq!(taken + consumer.waiting(), pushed);
        });
    }

    /// Fails if the writer's leaving is told, or heard, with a weaker order.
    #[test]
    fn who_sees_the_writer_gone_sees_all_that_it_wrote() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                for value in 0..2 {
                    producer.push(Box::new(value)).unwrap();
                }
            });
            // What is remembered of the tail must not stand for what came since.
            let mut taken = usize::from(consumer.pop().is_some());
            if consumer.is_deserted() {
                assert_eq!(taken + consumer.waiting(), 2);
                while let Some(value) = consumer.pop() {
                    assert_eq!(*value, taken);
                    taken += 1;
                }
                assert_eq!(taken, 2);
            }
            writer.join().unwrap();
            assert!(consumer.is_deserted());
        });
    }
}
