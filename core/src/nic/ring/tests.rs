//! Tests of a ring whose two ends are used by one thread, and by two.

use super::*;

#[test]
fn the_values_of_a_batch_are_handed_over_at_once_and_their_slots_are_given_back_at_once() {
    let (mut producer, mut consumer) = ring(3);
    for round in 0..5 {
        let mut several = producer.write_batch();
        for value in 0..3 {
            several.slot().fill(round * 3 + value);
        }
        assert_eq!(consumer.waiting(), 0);
        assert_eq!((several.finish(), consumer.waiting()), (3, 3));
        consumer.refresh();
        let mut passing = consumer.read_batch(2);
        for value in 0..2 {
            let next = passing.next().expect("three were seen");
            assert_eq!(*next, round * 3 + value);
            next.pass();
        }
        assert!(passing.next().is_none());
        assert_eq!((passing.finish(), producer.room()), (2, 2));
        assert_eq!(consumer.pop(), Some(round * 3 + 2));
    }
}

#[test]
fn a_ring_that_grows_gives_its_values_in_order_and_drops_the_rest_once() {
    let (mut producer, mut consumer) = ring(2);
    let dropped = Arc::new(());
    let (mut written, mut taken) = (0, 0);
    for depth in [2, 3, 4, 9, 16, 16, 40] {
        producer.grow(depth);
        assert_eq!(producer.depth(), depth);
        while producer.push((written, Arc::clone(&dropped))).is_ok() {
            written += 1;
        }
        assert_eq!((producer.room(), consumer.waiting()), (0, depth));
        for _ in 0..depth / 2 {
            assert_eq!(consumer.pop().map(|(value, _)| value), Some(taken));
            taken += 1;
        }
    }
    assert_eq!(Arc::strong_count(&dropped), 1 + written - taken);
    drop(producer);
    drop(consumer);
    assert_eq!(Arc::strong_count(&dropped), 1);
}

#[test]
fn a_ring_grows_while_another_thread_reads() {
    let (mut producer, mut consumer) = ring(1);
    let reader = std::thread::spawn(move || {
        for expected in 0..10_000 {
            let value = loop {
                match consumer.pop() {
                    Some(value) => break value,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(value, expected);
        }
    });
    let mut depth = 1;
    for value in 0..10_000 {
        while producer.push(value).is_err() {
            depth += 1;
            producer.grow(depth);
        }
    }
    reader.join().expect("it has taken all");
}

#[test]
#[should_panic(expected = "has asked for room")]
fn a_full_ring_has_no_slot_to_write() {
    let (mut producer, _consumer) = ring(1);
    let mut several = producer.write_batch();
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
fn a_value_that_was_not_taken_is_dropped_once_with_the_ring() {
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
fn a_range_of_the_values_that_were_seen_is_iterated_in_order() {
    let (mut producer, mut consumer) = ring(4);
    // So far that the part goes around the end of the slots.
    for value in 0..3 {
        producer.push(value).expect("room");
        assert_eq!(consumer.pop(), Some(value));
    }
    (3..6).for_each(|value| producer.push(value).expect("room"));
    assert_eq!(consumer.seen_range(0..3).count(), 0, "it was not looked");
    consumer.refresh();
    assert!(consumer.seen_range(1..9).eq(&[4, 5]));
    assert_eq!(consumer.seen_range(3..9).count(), 0);
}

#[test]
fn a_value_is_taken_once_when_what_is_made_of_it_panics() {
    let value = Arc::new(());
    let (mut producer, mut consumer) = ring(2);
    let (mut beyond, mut last) = ring::<Arc<()>>(2);
    producer.push(Arc::clone(&value)).expect("room");
    let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let (head, slot) = (consumer.head().expect("a value"), beyond.slot().expect("room"));
        head.move_to(slot, |_| panic!("as it is to"));
    }));
    assert!(made.is_err());
    assert_eq!((Arc::strong_count(&value), consumer.pop().is_none()), (1, true));
    assert!(last.pop().is_none());
}

/// Counts how often it is dropped, and panics the first time if it is told to.
struct Counted<'c>(&'c std::cell::Cell<u32>, bool);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        assert!(!self.1 || self.0.get() > 1, "as it is to");
    }
}

/// Returns whether a function panicked.
fn panics(does: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(does)).is_err()
}

/// Regression test for a bug: a value whose drop panicked stayed at the head, and was dropped again
/// by whichever value came next.
#[test]
fn a_value_whose_drop_panics_is_dropped_once_and_those_behind_it_are_read() {
    let [first, second, third] = [const { std::cell::Cell::new(0) }; 3];
    let (mut producer, mut consumer) = ring(4);
    for (count, fails) in [(&first, true), (&second, true), (&third, false)] {
        assert!(producer.push(Counted(count, fails)).is_ok());
    }
    assert!(panics(|| consumer.drop_front()));
    assert_eq!((first.get(), consumer.waiting()), (1, 2));
    assert!(panics(|| drop(consumer.head().expect("the second").leaving())));
    assert_eq!((second.get(), consumer.waiting()), (1, 1));
    consumer.drop_front();
    drop((producer, consumer));
    assert_eq!([&first, &second, &third].map(std::cell::Cell::get), [1, 1, 1]);
}

/// A panic in the drop of one value may leave those behind it undropped, and drops none twice.
#[test]
fn a_ring_that_is_dropped_drops_no_value_twice_when_the_drop_of_one_panics() {
    let [first, second, third] = [const { std::cell::Cell::new(0) }; 3];
    let (mut producer, mut consumer) = ring(4);
    for (count, fails) in [(&first, false), (&second, true), (&third, false)] {
        assert!(producer.push(Counted(count, fails)).is_ok());
    }
    consumer.drop_front();
    drop(producer);
    assert!(panics(|| drop(consumer)));
    assert_eq!([&first, &second].map(std::cell::Cell::get), [1, 1]);
    assert!(third.get() <= 1, "{}", third.get());
}

#[test]
fn a_ring_is_deserted_when_its_writing_end_is_dropped() {
    let (mut producer, mut consumer) = ring(2);
    producer.push(7).expect("room");
    assert!(!consumer.is_deserted());
    drop(producer);
    assert!(consumer.is_deserted());
    assert_eq!((consumer.pop(), consumer.pop()), (Some(7), None));
}

#[test]
fn a_ring_between_two_threads_loses_no_value() {
    const VALUES: u64 = if cfg!(miri) { 200 } else { 100_000 };
    let (mut producer, mut consumer) = ring(5);
    let writer = std::thread::spawn(move || {
        for mut value in (0..VALUES).map(Box::new) {
            while let Err(back) = producer.push(value) {
                value = back;
                std::hint::spin_loop();
            }
        }
    });
    let mut next = 0;
    while next < VALUES {
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
