//! The problem: how many keys there are, what they are, and which ranks some of them must have.

use std::ops::Range;

use super::nas::{BITS, Class, Generator};

/// How many times the keys are ranked.
pub const ITERATIONS: u32 = 10;

/// How many keys are tested in each iteration.
pub const TESTS: usize = 5;

/// The seed of the random numbers from which the keys are made.
const SEED: u64 = 314_159_265;

/// The parameters of a problem class. They are those of the NAS Parallel Benchmarks 3, file `is.c`.
pub struct Problem {
    pub class: Class,
    /// The logarithm to base 2 of how many keys there are.
    keys_log: u32,
    /// The logarithm to base 2 of the number below which all keys are.
    values_log: u32,
    /// The logarithm to base 2 of how many buckets the values are divided into.
    buckets_log: u32,
    /// The indices of the keys that are tested.
    pub tested: [usize; TESTS],
    /// The ranks of the tested keys, before [`expected`](Self::expected) corrects them.
    ranks: [u32; TESTS],
}

impl Problem {
    pub fn new(class: Class) -> Self {
        let (logs, tested, ranks) = match class {
            Class::S => {
                ((16, 11, 9), [48_427, 17_148, 23_627, 62_548, 4_431], [0, 18, 346, 64_917, 65_463])
            }
            Class::W => (
                (20, 16, 10),
                [357_773, 934_767, 875_723, 898_999, 404_505],
                [1_249, 11_698, 1_039_987, 1_043_896, 1_048_018],
            ),
            Class::A => (
                (23, 19, 10),
                [2_112_377, 662_041, 5_336_171, 3_642_833, 4_250_760],
                [104, 17_523, 123_928, 8_288_932, 8_388_264],
            ),
        };
        let (keys_log, values_log, buckets_log) = logs;
        Self { class, keys_log, values_log, buckets_log, tested, ranks }
    }

    /// How many keys there are, of all processes together.
    pub fn keys(&self) -> usize {
        1 << self.keys_log
    }

    /// The number below which all keys are.
    pub fn values(&self) -> usize {
        1 << self.values_log
    }

    /// How many buckets the values are divided into.
    pub fn buckets(&self) -> usize {
        1 << self.buckets_log
    }

    /// How many bits a key is shifted by to get the number of its bucket.
    pub fn bucket_shift(&self) -> u32 {
        self.values_log - self.buckets_log
    }

    /// The indices of the keys that a process has.
    pub fn part(&self, rank: usize, processes: usize) -> Range<usize> {
        rank * self.keys() / processes..(rank + 1) * self.keys() / processes
    }

    /// Makes the keys at some indices. Each key is the average of four random numbers, which are
    /// scaled to the values that keys have.
    pub fn make_keys(&self, indices: Range<usize>) -> Vec<u32> {
        let mut random = Generator::behind(4 * indices.start as u64, SEED);
        let mut sum = || (0..4).map(|_| random.number()).sum::<u64>();
        indices.map(|_| (sum() >> (BITS + 2 - self.values_log)) as u32).collect()
    }

    /// Changes the two keys that every iteration changes, as far as they are among `keys`, which
    /// are the keys at the indices from `first` on.
    pub fn change_keys(&self, keys: &mut [u32], first: usize, iteration: u32) {
        let other = self.values() as u32 - iteration;
        for (index, key) in [(iteration, iteration), (iteration + ITERATIONS, other)] {
            let place = (index as usize).checked_sub(first);
            if let Some(place) = place.and_then(|place| keys.get_mut(place)) {
                *place = key;
            }
        }
    }

    /// The keys that are tested, as far as they are among `keys`, which are the keys at the indices
    /// from `first` on; and 0 for the others.
    pub fn tested_keys(&self, keys: &[u32], first: usize) -> [u32; TESTS] {
        let key = |index: usize| index.checked_sub(first).and_then(|place| keys.get(place));
        self.tested.map(|index| key(index).copied().unwrap_or(0))
    }

    /// The rank that a tested key has in an iteration, from 1 on. The keys that iterations change
    /// come before some of the tested keys, and move their ranks up or down.
    pub fn expected(&self, test: usize, iteration: u32) -> u32 {
        let rank = self.ranks[test];
        match (self.class, test) {
            (Class::S, 0..=2) => rank + iteration,
            (Class::S, _) => rank - iteration,
            (Class::W, 0..=1) => rank + iteration - 2,
            (Class::W, _) => rank - iteration,
            (Class::A, 0..=2) => rank + iteration - 1,
            (Class::A, _) => rank - (iteration - 1),
        }
    }
}
