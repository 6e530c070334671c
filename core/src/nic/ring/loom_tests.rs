//! Tests of a ring between two threads, in all their interleavings.

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

/// This test fails if either end's index is stored or loaded with a weaker order.
#[test]
fn several_values_are_whole_and_their_slots_are_used_again() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(2);
        let writer = thread::spawn(move || {
            let mut pushed = 0;
            for _ in 0..2 {
                let room = producer.room();
                let mut batch = producer.write_batch();
                for value in pushed..pushed + room {
                    batch.slot().fill(Some(Box::new(value)));
                }
                pushed += batch.finish();
            }
            pushed
        });
        let mut taken = 0;
        for _ in 0..2 {
            consumer.refresh();
            let mut batch = consumer.read_batch(2);
            while let Some(mut next) = batch.next() {
                assert_eq!(next.take(), Some(Box::new(taken)));
                taken += 1;
                next.pass();
            }
        }
        let pushed = writer.join().unwrap();
        assert_eq!(taken + consumer.waiting(), pushed);
    });
}

/// This is how the receive of a message becomes its completion. The test fails if the value is
/// handed over before its old slot is free.
#[test]
fn a_thread_that_finds_a_moved_value_finds_room_where_the_value_was() {
    loom::model(|| {
        let ((mut first, mut from), (mut to, mut last)) = (ring(1), ring(1));
        first.push(Box::new(7)).unwrap();
        let mover = thread::spawn(move || {
            let (head, slot) = (from.head().unwrap(), to.slot().unwrap());
            head.move_to(slot, |value| Box::new(*value + 1));
            from
        });
        let found = last.pop();
        if found.is_some() {
            assert_eq!(found, Some(Box::new(8)));
            assert!(first.push(Box::new(9)).is_ok());
        }
        mover.join().unwrap();
    });
}

/// This test fails if the flag of the dropped writer is stored or loaded with a weaker order.
#[test]
fn a_reader_that_sees_the_ring_deserted_sees_all_that_was_written() {
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
