//! Every interleaving of a few accesses to one region, by loom's model of memory:
//! `RUSTFLAGS="--cfg loom" cargo test -p doorbell-core --test loom --release`
#![cfg(loom)]

use doorbell_core::memory::{Region, Sleepers};
use loom::thread;

#[test]
fn neighbours_in_one_word_lose_nothing() {
    loom::model(|| {
        let region = Region::from_bytes(b"........");
        let other = region.clone();
        let neighbour = thread::spawn(move || other.write_at(3, b"right").unwrap());
        region.write_at(0, b"all").unwrap();
        neighbour.join().unwrap();
        assert_eq!(bytes(&region), *b"allright");
    });
}

#[test]
fn neighbours_whose_ranges_meet_inside_a_word_lose_nothing() {
    loom::model(|| {
        let region = Region::from_bytes(b"................");
        let other = region.clone();
        let neighbour = thread::spawn(move || other.write_at(13, b"ing").unwrap());
        region.write_at(6, b"nothing").unwrap();
        neighbour.join().unwrap();
        assert_eq!(bytes(&region), *b"......nothinging");
    });
}

#[test]
fn a_copy_between_regions_keeps_the_neighbours() {
    loom::model(|| {
        let region = Region::from_bytes(b"........");
        let other = region.clone();
        let neighbour = thread::spawn(move || {
            let from = Region::from_bytes(b"copied");
            from.copy_to(0, &other, 2, 6).unwrap();
        });
        region.write_at(0, b"is").unwrap();
        neighbour.join().unwrap();
        assert_eq!(bytes(&region), *b"iscopied");
    });
}

#[test]
fn a_reader_sees_the_old_word_or_the_new_one() {
    loom::model(|| {
        let region = Region::from_bytes(b"old.old.");
        let other = region.clone();
        let writer = thread::spawn(move || other.write_at(1, b"NEW+NEW").unwrap());
        let seen = bytes::<8>(&region);
        assert!([*b"old.old.", *b"oNEW+NEW"].contains(&seen), "torn: {seen:?}");
        writer.join().unwrap();
    });
}

#[test]
fn the_last_word_of_a_write_publishes_the_others() {
    publishes(|region| region.write_at(0, b"contents, flag..").unwrap(), |flag| flag != 0);
}

#[test]
fn a_last_word_written_in_part_publishes_the_others() {
    publishes(|region| region.write_at(0, b"contentsf").unwrap(), |flag| flag != 0);
}

#[test]
fn the_last_word_of_a_copy_publishes_the_others() {
    publishes(
        |region| {
            let from = Region::from_bytes(b"contents, flag..");
            from.copy_to(0, region, 0, 16).unwrap();
        },
        |flag| flag != 0,
    );
}

#[test]
fn a_neighbour_in_the_last_word_does_not_undo_the_publishing() {
    publishes(
        |region| {
            let other = region.clone();
            let neighbour = thread::spawn(move || other.write_at(12, b"else").unwrap());
            region.write_at(0, b"contents, fl").unwrap();
            neighbour.join().unwrap();
        },
        |flag| flag.to_ne_bytes()[..4] == *b", fl",
    );
}

/// Asserts that whoever polls until the second word is set by `write` finds the first one set, too.
///
/// The reader polls, since loom does not try every place for a single look: not those after a store
/// to a word that the writer has loaded before. And it is a thread of its own, since loom shows
/// nobody who has yielded the values that he saw before, and the first thread saw them all at zero.
fn publishes(write: fn(&Region), set: fn(u64) -> bool) {
    loom::model(move || {
        let region = Region::new(16);
        let other = region.clone();
        let writer = thread::spawn(move || write(&other));
        let reader = thread::spawn(move || {
            while !set(region.load(8).unwrap()) {
                thread::yield_now();
            }
            assert_eq!(bytes(&region), *b"contents");
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn nobody_sleeps_through_a_change_of_a_region() {
    loom::model(|| {
        let region = Region::new(16);
        let other = region.clone();
        let sleeper = thread::spawn(move || {
            let announced = Sleepers::new(&other, 8).unwrap().announce();
            let sleeps = other.load(0).unwrap() == 0;
            if sleeps {
                // Whoever finds the region as it was sleeps, and has announced it until woken.
                std::mem::forget(announced);
            }
            sleeps
        });
        region.store(0, 1).unwrap();
        let wakes = Sleepers::new(&region, 8).unwrap().are_there();
        let sleeps = sleeper.join().unwrap();
        assert!(wakes || !sleeps, "it sleeps, and nobody wakes it");
    });
}

/// The first bytes of a region.
fn bytes<const N: usize>(region: &Region) -> [u8; N] {
    let mut bytes = [0; N];
    region.read_at(0, &mut bytes).unwrap();
    bytes
}
