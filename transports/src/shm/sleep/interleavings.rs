//! A reader that falls asleep and a writer, in all their interleavings, by loom's model of memory:
//! `RUSTFLAGS="--cfg transports_loom" cargo test -p doorbell-transports --lib --release`

use std::iter::once;
use std::panic::catch_unwind;
use std::sync::Arc;

use loom::model::Builder;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::*;

/// Memory as loom models it.
enum Modelled {}

impl Memory for Modelled {
    type Word = AtomicU64;

    fn load(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    fn store(word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Relaxed);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Memory as loom models it, in which fences are left out.
enum Unfenced {}

impl Memory for Unfenced {
    type Word = AtomicU64;

    fn load(word: &AtomicU64) -> u64 {
        Modelled::load(word)
    }

    fn store(word: &AtomicU64, value: u64) {
        Modelled::store(word, value);
    }

    fn fence() {}
}

/// A model of one direction of a link: the number of records, the reader's word, and the bell.
struct Link {
    records: AtomicU64,
    sleeping: AtomicU64,
    bell: Notify,
}

impl Link {
    fn new() -> Arc<Self> {
        let [records, sleeping] = [(); 2].map(|()| AtomicU64::new(0));
        Arc::new(Self { records, sleeping, bell: Notify::new() })
    }

    /// Writes as a device pushes a record and flushes.
    fn write<M: Memory<Word = AtomicU64>>(&self, records: u64) {
        self.records.store(records, Ordering::Release);
        if Written::<M>::new().must_wake(&self.sleeping) {
            self.bell.notify();
        }
    }

    /// As a device reads, armed when there is nothing, until it has so many records. Loom finds a
    /// deadlock where nobody rings for a sleeper.
    fn read<M: Memory<Word = AtomicU64>>(&self, records: u64) {
        let look = || self.records.load(Ordering::Acquire);
        let mut seen = look();
        while seen < records {
            fall_asleep::<M>(once(&self.sleeping));
            if look() == seen {
                self.bell.wait();
            }
            wake_up::<M>(once(&self.sleeping));
            seen = look();
        }
    }
}

/// A reader of so many records, who sleeps, and their writer.
fn exchange<R, W>(records: u64)
where
    R: Memory<Word = AtomicU64>,
    W: Memory<Word = AtomicU64>,
{
    let mut model = Builder::new();
    // Of two records, all interleavings would take half a minute.
    model.preemption_bound = (records > 1).then_some(4);
    model.check(move || {
        let link = Link::new();
        let writers = link.clone();
        let writer = thread::spawn(move || (1..=records).for_each(|n| writers.write::<W>(n)));
        link.read::<R>(records);
        writer.join().unwrap();
    });
}

#[test]
fn a_reader_that_falls_asleep_is_woken_by_every_writer_it_has_not_seen() {
    exchange::<Modelled, Modelled>(1);
    exchange::<Modelled, Modelled>(2);
}

#[test]
fn without_the_fence_of_either_side_a_record_is_slept_through() {
    let without_writers = catch_unwind(|| exchange::<Modelled, Unfenced>(1));
    let without_readers = catch_unwind(|| exchange::<Unfenced, Modelled>(1));
    for found in [without_writers, without_readers] {
        let why = found.expect_err("loom finds the record that is slept through");
        let why = why.downcast_ref::<String>().map_or("no text", String::as_str);
        assert!(why.contains("deadlock"), "{why}");
    }
}
