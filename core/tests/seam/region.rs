//! Regions under contention, against a model, and in private epochs.
#![cfg(not(loom))]

use doorbell_core::memory::{AccessError, Private, Region, SliceError, words};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::{hint, iter};

/// How often the threads of a test write, in all.
const ROUNDS: usize = if cfg!(miri) { 400 } else { 1_000_000 };

mod neighbours {
    use super::*;

    #[test]
    fn who_write_adjacent_bytes_lose_nothing() {
        contend(24, [7..8, 8..9], ROUNDS, write);
        contend(8, [3..4, 4..5], ROUNDS, write);
    }

    #[test]
    fn who_write_adjacent_words_lose_nothing() {
        contend(16, [0..8, 8..16], ROUNDS, write);
    }

    #[test]
    fn who_share_a_word_lose_nothing() {
        contend(8, [0..3, 3..8], ROUNDS, write);
    }

    #[test]
    fn whose_ranges_meet_inside_a_word_lose_nothing() {
        contend(40, [5..21, 21..40], ROUNDS, write);
    }

    #[test]
    fn who_copy_between_regions_lose_nothing() {
        contend(40, [5..21, 21..40], ROUNDS, |region, at, bytes| {
            // An offset of its own, so that the words are shifted on the way.
            let from = Region::new(3 + bytes.len());
            from.write_at(3, bytes).unwrap();
            from.copy_to(3, region, at, bytes.len()).unwrap();
        });
    }

    #[test]
    fn whose_ranges_interleave_at_random_lose_nothing() {
        const LAYOUTS: usize = 200;
        let mut random = Random(1);
        for _ in 0..LAYOUTS {
            let mut owned = [vec![], vec![]];
            let mut at = 0;
            for turn in 0.. {
                let end = at + 1 + random.below(13);
                if end > 64 {
                    break;
                }
                owned[turn % 2].push(at..end);
                at = end;
            }
            contend_in_turn(64, &owned, ROUNDS / LAYOUTS, write);
        }
    }

    #[test]
    fn of_an_atomic_counter_lose_nothing() {
        let region = Region::new(24);
        thread::scope(|scope| {
            scope.spawn(|| (0..ROUNDS / 2).all(|_| region.fetch_add(8, 2).is_ok()));
            scope.spawn(|| {
                for round in 0..ROUNDS / 2 {
                    region.write_at(5, &[round as u8; 3]).unwrap();
                    region.write_at(16, &[round as u8; 3]).unwrap();
                    region.fetch_add(8, 1).unwrap();
                }
            });
        });
        assert_eq!(region.load(8), Ok(3 * ROUNDS as u64 / 2));
    }

    fn write(region: &Region, at: usize, bytes: &[u8]) {
        region.write_at(at, bytes).unwrap();
    }

    /// How often a thread writes before it waits for the others, so that none runs alone for long.
    const BATCH: usize = 1_000;

    /// Lets a thread for each range write it again and again, `rounds` times in all, and find
    /// there each time what it wrote.
    fn contend<const N: usize>(
        len: usize,
        owned: [Range<usize>; N],
        rounds: usize,
        write: fn(&Region, usize, &[u8]),
    ) {
        contend_in_turn(len, &owned.map(|range| iter::once(range).collect()), rounds, write);
    }

    /// The same where each thread owns several ranges, and writes them in turn.
    fn contend_in_turn(
        len: usize,
        owned: &[Vec<Range<usize>>],
        rounds: usize,
        write: fn(&Region, usize, &[u8]),
    ) {
        // One test at a time: a loss needs writers that run at once, and cores may be few.
        static CORES: Mutex<()> = Mutex::new(());
        let _alone = CORES.lock();
        let region = Region::new(len);
        let together = Barrier::new(owned.len());
        thread::scope(|scope| {
            for ranges in owned {
                scope.spawn(|| {
                    let mut mine = ranges.iter().cycle();
                    let mut lost = None;
                    for round in 0..rounds / owned.len() {
                        if round % BATCH == 0 {
                            together.wait();
                        }
                        let range = mine.next().unwrap().clone();
                        if lost.is_none() && !keeps(&region, range.clone(), round, write) {
                            lost = Some((range, round));
                        }
                    }
                    assert_eq!(lost, None, "bytes, and the round they were lost in");
                });
            }
        });
    }

    /// Whether what is written to a range is there when it is read back.
    fn keeps(
        region: &Region,
        range: Range<usize>,
        round: usize,
        write: fn(&Region, usize, &[u8]),
    ) -> bool {
        let (mut wrote, mut found) = ([0; 64], [0; 64]);
        let (wrote, found) = (&mut wrote[..range.len()], &mut found[..range.len()]);
        fill(wrote, round);
        write(region, range.start, wrote);
        // A neighbour's store that undoes it may still be on its way.
        hint::spin_loop();
        region.read_at(range.start, found).unwrap();
        found == wrote
    }

    /// Bytes that differ from round to round, and from one to the next.
    fn fill(bytes: &mut [u8], round: usize) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (round + i * 7) as u8;
        }
    }

    /// Numbers from a seed, by xorshift.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound) as usize
        }
    }
}

mod model {
    use super::*;

    /// One access to one of two regions.
    #[derive(Clone, Debug)]
    enum Op {
        Write { to: usize, at: usize, bytes: Vec<u8> },
        Read { from: usize, at: usize, len: usize },
        Copy { from: usize, offset: usize, to: usize, at: usize, len: usize },
        Load { from: usize, at: usize },
        Store { to: usize, at: usize, value: u64 },
        Add { to: usize, at: usize, value: u64 },
        Swap { to: usize, at: usize, expect_it: bool, value: u64 },
    }

    fn op() -> impl Strategy<Value = Op> {
        let which = || 0..2usize;
        // Mostly within, now and then just beyond the end, or so far that sums overflow.
        let far = || usize::MAX - 70..=usize::MAX;
        let at = || prop_oneof![20 => 0..90usize, 1 => 90..130usize, 1 => far()];
        let word = || prop_oneof![6 => (0..16usize).prop_map(|i| i * 8), 1 => at()];
        let (len, value) = (|| 0..60usize, any::<u64>);
        let bytes = || prop::collection::vec(any::<u8>(), len());
        prop_oneof![
            4 => (which(), at(), bytes()).prop_map(|(to, at, bytes)| Op::Write { to, at, bytes }),
            2 => (which(), at(), len()).prop_map(|(from, at, len)| Op::Read { from, at, len }),
            4 => (which(), at(), which(), at(), len())
                .prop_map(|(from, offset, to, at, len)| Op::Copy { from, offset, to, at, len }),
            1 => (which(), word()).prop_map(|(from, at)| Op::Load { from, at }),
            1 => (which(), word(), value()).prop_map(|(to, at, value)| Op::Store { to, at, value }),
            1 => (which(), word(), value()).prop_map(|(to, at, value)| Op::Add { to, at, value }),
            1 => (which(), word(), any::<bool>(), value())
                .prop_map(|(to, at, expect_it, value)| Op::Swap { to, at, expect_it, value }),
        ]
    }

    /// The bytes of both regions, as they must be: from 1 upwards at first.
    fn model() -> impl Strategy<Value = Model> {
        let bytes = || (0..100u8).prop_map(|len| (1..=len).collect());
        [bytes(), bytes()]
    }

    type Model = [Vec<u8>; 2];

    /// The bytes of a range of the model, or the error that the region must give.
    fn range(model: &[u8], at: usize, len: usize) -> Result<Range<usize>, AccessError> {
        let end = at.checked_add(len).filter(|end| *end <= model.len());
        let error = AccessError::OutOfBounds { offset: at, len, region: model.len() };
        end.map(|end| at..end).ok_or(error)
    }

    /// The word of the model, and where it lies, or the error that the region must give.
    fn word(model: &[u8], at: usize) -> Result<(Range<usize>, u64), AccessError> {
        let range = range(model, at, 8)?;
        if !at.is_multiple_of(8) {
            return Err(AccessError::Misaligned { offset: at });
        }
        Ok((range.clone(), u64::from_ne_bytes(model[range].try_into().unwrap())))
    }

    /// Does an access to the model, and returns the bytes or the word that the region must return.
    fn on_model(model: &mut Model, op: &Op) -> Result<(Vec<u8>, u64), AccessError> {
        match *op {
            Op::Write { to, at, ref bytes } => {
                let range = range(&model[to], at, bytes.len())?;
                model[to][range].copy_from_slice(bytes);
            }
            Op::Read { from, at, len } => {
                return Ok((model[from][range(&model[from], at, len)?].to_vec(), 0));
            }
            Op::Copy { from, offset, to, at, len } => {
                let bytes = model[from][range(&model[from], offset, len)?].to_vec();
                let range = range(&model[to], at, len)?;
                model[to][range].copy_from_slice(&bytes);
            }
            Op::Load { from, at } => return Ok((vec![], word(&model[from], at)?.1)),
            Op::Store { to, at, value } => {
                let (range, _) = word(&model[to], at)?;
                model[to][range].copy_from_slice(&value.to_ne_bytes());
            }
            Op::Add { to, at, value } => {
                let (range, old) = word(&model[to], at)?;
                model[to][range].copy_from_slice(&old.wrapping_add(value).to_ne_bytes());
                return Ok((vec![], old));
            }
            Op::Swap { to, at, expect_it, value } => {
                let (range, old) = word(&model[to], at)?;
                if expect_it {
                    model[to][range].copy_from_slice(&value.to_ne_bytes());
                }
                return Ok((vec![], old));
            }
        }
        Ok((vec![], 0))
    }

    /// Does the same access to the regions.
    fn on_regions(regions: &[Region; 2], op: &Op) -> Result<(Vec<u8>, u64), AccessError> {
        match *op {
            Op::Write { to, at, ref bytes } => regions[to].write_at(at, bytes)?,
            Op::Read { from, at, len } => {
                let mut bytes = vec![0; len];
                regions[from].read_at(at, &mut bytes)?;
                return Ok((bytes, 0));
            }
            Op::Copy { from, offset, to, at, len } => {
                regions[from].copy_to(offset, &regions[to], at, len)?;
            }
            Op::Load { from, at } => return Ok((vec![], regions[from].load(at)?)),
            Op::Store { to, at, value } => regions[to].store(at, value)?,
            Op::Add { to, at, value } => return Ok((vec![], regions[to].fetch_add(at, value)?)),
            Op::Swap { to, at, expect_it, value } => {
                let now = regions[to].load(at)?;
                let expected = if expect_it { now } else { !now };
                return Ok((vec![], regions[to].compare_swap(at, expected, value)?));
            }
        }
        Ok((vec![], 0))
    }

    proptest! {
        #[test]
        fn any_sequence_of_accesses_does_what_it_does_to_plain_bytes(
            mut model in model(),
            ops in prop::collection::vec(op(), 0..40),
        ) {
            let regions = [Region::from_bytes(&model[0]), Region::from_bytes(&model[1])];
            for op in &ops {
                prop_assert_eq!(on_regions(&regions, op), on_model(&mut model, op), "{:?}", op);
                for (region, model) in regions.iter().zip(&model) {
                    prop_assert_eq!(&contents(region), model, "after {:?}", op);
                }
            }
        }
    }

    #[test]
    fn a_copy_at_any_offsets_is_a_copy_of_bytes() {
        let before: Vec<u8> = (1..=72).collect();
        for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))) {
            for len in 0..=48 {
                let region = Region::from_bytes(&before);
                region.copy_to(from, &region, to, len).unwrap();
                let mut expected = before.clone();
                expected.copy_within(from..from + len, to);
                assert_eq!(contents(&region), expected, "{len} bytes at {from} to {to}");
            }
        }
    }
}

mod bounds {
    use super::*;

    #[test]
    fn no_bytes_may_be_accessed_wherever_the_region_is() {
        let region = Region::new(13);
        assert_eq!(region.write_at(13, &[]), Ok(()));
        assert_eq!(region.read_at(13, &mut []), Ok(()));
        assert_eq!(region.copy_to(13, &region, 5, 0), Ok(()));
        assert!(region.write_at(14, &[]).is_err());
        let empty = Region::new(0);
        assert!(empty.is_empty());
        assert_eq!(empty.write_at(0, &[]), Ok(()));
    }

    #[test]
    fn an_offset_that_overflows_is_an_error() {
        let region = Region::new(16);
        let error = AccessError::OutOfBounds { offset: usize::MAX, len: 2, region: 16 };
        assert_eq!(region.write_at(usize::MAX, &[1, 2]), Err(error));
        assert_eq!(region.copy_to(0, &region, usize::MAX, 2), Err(error));
        assert_eq!(region.copy_to(usize::MAX, &region, 0, 2), Err(error));
        assert!(region.load(usize::MAX - 7).is_err());
        assert_eq!(
            error.to_string(),
            "2 bytes at offset 18446744073709551615 do not lie within a region of 16 bytes"
        );
    }

    #[test]
    fn a_word_that_the_region_ends_in_is_not_accessible_whole() {
        let region = Region::new(13);
        assert_eq!(region.load(0), Ok(0));
        assert_eq!(region.load(8), Err(AccessError::OutOfBounds { offset: 8, len: 8, region: 13 }));
        assert_eq!(region.load(4), Err(AccessError::Misaligned { offset: 4 }));
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn the_primitive_panics_beyond_its_words() {
        words::copy_in(Region::new(16).words(), 9, &[0; 8]);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn the_primitive_panics_on_an_offset_that_overflows() {
        words::copy_out(Region::new(16).words(), usize::MAX, &mut [0; 8]);
    }
}

mod private {
    use super::*;

    #[test]
    fn memory_is_refused_while_another_handle_lives() {
        let region = Region::from_bytes(b"shared");
        let (one, two) = (region.clone(), region.clone());
        let refused = region.try_private().unwrap_err();
        assert_eq!(refused.others(), 2);
        assert!(refused.to_string().contains("2 other handles"), "{refused}");
        let region = refused.into_region();
        drop(one);
        let region = region.try_private().unwrap_err().into_region();
        drop(two);
        assert!(region.try_private().is_ok());
    }

    #[test]
    fn contents_survive_into_the_epoch_and_out_of_it() {
        let region = Region::from_bytes(b"before the epoch");
        let mut private = region.try_private().unwrap();
        assert_eq!(private.as_bytes(), b"before the epoch");
        private.as_bytes_mut()[..6].copy_from_slice(b"inside");
        let region = private.open();
        assert_eq!(contents(&region), b"inside the epoch");
        assert_eq!(contents(&region.clone()), b"inside the epoch");
    }

    #[test]
    fn writes_of_a_thread_that_dropped_its_handle_are_in_place() {
        for round in 0..200 {
            let mut region = Region::new(64);
            let other = region.clone();
            let writer = thread::spawn(move || other.write_at(0, &[round; 64]).unwrap());
            let mut private: Private = loop {
                match region.try_private() {
                    Ok(private) => break private,
                    Err(shared) => {
                        assert_eq!(shared.others(), 1);
                        region = shared.into_region();
                        thread::yield_now();
                    }
                }
            };
            assert_eq!(private.as_bytes(), [round; 64]);
            writer.join().unwrap();
        }
    }

    #[test]
    fn memory_is_lent_as_values() {
        let mut private = Region::new(32).try_private().unwrap();
        private.as_mut_slice_of::<f64>().unwrap().fill(0.5);
        assert_eq!(private.as_slice_of::<[u64; 2]>().unwrap(), [[0.5f64.to_bits(); 2]; 2]);
        assert_eq!(private.open().load(24), Ok(0.5f64.to_bits()));
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let mut private = Region::new(13).try_private().unwrap();
        assert_eq!(private.as_bytes().len(), 13);
        let error = private.as_mut_slice_of::<u32>().unwrap_err();
        assert_eq!(error, SliceError::Length { len: 13, of: "u32", size: 4 });
        assert_eq!(error.to_string(), "13 bytes are no whole number of u32, which takes 4");
        assert_eq!(private.as_slice_of::<[u8; 13]>().unwrap().len(), 1);
        let mut empty = Region::new(0).try_private().unwrap();
        assert!(empty.as_slice_of::<u64>().unwrap().is_empty());
    }
}

/// All the bytes of a region.
fn contents(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.read_at(0, &mut bytes).unwrap();
    bytes
}

mod foreign_memory {
    use super::*;
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// A region on words that an `Arc` keeps, as a mapping would.
    fn foreign(len: usize) -> (Arc<[AtomicU64]>, Region) {
        let words: Arc<[AtomicU64]> = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        // Of the whole slice, for a pointer made of one word reaches no other.
        let first = NonNull::from(&*words).cast();
        let owner = Arc::clone(&words);
        // SAFETY: the owner keeps so many words, which all reach as atomics.
        (words, unsafe { Region::foreign(first, len, owner) })
    }

    #[test]
    fn is_read_and_written_like_any_other_and_kept_until_the_last_handle_goes() {
        let (words, region) = foreign(20);
        assert_eq!((region.len(), region.words().len()), (20, 3));
        region.write_at(6, b"across").unwrap();
        region.fetch_add(8, 0).unwrap();
        assert!(region.write_at(15, b"beyond").is_err());
        let mut read = [0; 6];
        words::copy_out(&words, 6, &mut read);
        assert_eq!(&read, b"across");
        let other = region.clone();
        drop(region);
        assert_eq!(Arc::strong_count(&words), 2);
        drop(other);
        assert_eq!(Arc::strong_count(&words), 1);
    }

    #[test]
    fn is_private_by_agreement_only() {
        let (words, region) = foreign(16);
        let refused = region.try_private().unwrap_err();
        assert_eq!(refused.others(), 0);
        assert!(refused.to_string().contains("assume_private"), "{refused}");
        // SAFETY: nobody uses `words` before the epoch is over.
        let mut alone = unsafe { refused.into_region().assume_private() };
        alone.as_mut_slice_of::<u64>().unwrap()[1] = 7;
        let region = alone.open();
        assert_eq!(region.load(8), Ok(words[1].load(std::sync::atomic::Ordering::Relaxed)));
        assert_eq!(region.load(8), Ok(7));
    }
}

/// Lengths that are moved by the processor's own instruction.
mod long_copies {
    use super::*;

    #[test]
    fn are_copies_of_bytes_at_any_offsets_and_overlaps() {
        let before: Vec<u8> = (0..3000u32).map(|at| (at * at / 7) as u8).collect();
        let places = (0..9).chain([200, 1024, 1100]);
        for (from, to) in places.clone().flat_map(|from| places.clone().map(move |to| (from, to))) {
            for len in [1015, 1023, 1024, 1025, 1031, 1032, 1033, 1040, 1041, 1800] {
                let region = Region::from_bytes(&before);
                region.copy_to(from, &region, to, len).unwrap();
                let mut expected = before.clone();
                expected.copy_within(from..from + len, to);
                assert!(contents(&region) == expected, "{len} bytes at {from} to {to}");

                let region = Region::from_bytes(&before);
                region.write_at(to, &before[from..from + len]).unwrap();
                let mut expected = before.clone();
                expected[to..to + len].copy_from_slice(&before[from..from + len]);
                assert!(contents(&region) == expected, "{len} bytes to {to}");
            }
        }
    }

    #[test]
    fn move_each_word_whole_and_the_last_one_last() {
        const LEN: usize = 4096;
        const PUBLISHED: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let (region, copy) = (Region::new(LEN), Region::new(LEN));
        let others = (region.clone(), copy.clone());
        let writer = thread::spawn(move || {
            let (region, copy) = others;
            for round in 1..=PUBLISHED {
                region.write_at(0, &round.to_ne_bytes().repeat(LEN / 8)).unwrap();
                region.copy_to(0, &copy, 0, LEN).unwrap();
            }
        });
        let mut bytes = [0; LEN];
        let mut last = 0;
        while last < PUBLISHED {
            for region in [&region, &copy] {
                let published = region.load(LEN - 8).unwrap();
                region.read_at(0, &mut bytes).unwrap();
                let words = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
                for word in words {
                    assert!((published..=PUBLISHED).contains(&word), "{word} after {published}");
                }
                last = published;
            }
        }
        writer.join().unwrap();
    }
}
