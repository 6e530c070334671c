//! Chance, all of it from one number.

use proptest::prelude::{Rng, RngExt};
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Proptest's generator, thrown like dice.
pub struct Dice(pub TestRng);

impl Dice {
    pub fn new(number: u64) -> Self {
        let seed = [number.to_le_bytes(); 4];
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, seed.as_flattened()))
    }

    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// `len` bytes without a pattern, the same for the same number. Most of what is drawn is this, and
/// by a quicker generator.
pub fn bytes(number: u64, len: usize) -> Vec<u8> {
    let seed = [number.to_le_bytes(); 2];
    let mut bytes = vec![0; len];
    TestRng::from_seed(RngAlgorithm::XorShift, seed.as_flattened()).fill_bytes(&mut bytes);
    bytes
}
