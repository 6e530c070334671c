//! The computation: pairs of random numbers that are normally distributed, and what is counted of
//! them.

use std::ops::Range;

use super::nas::{BITS, Generator};

/// The seed of the random numbers.
const SEED: u64 = 271_828_183;

/// How many pairs of uniform random numbers a batch has, from which deviates are made.
pub const BATCH: u64 = 1 << 16;

/// How many squares there are, around the origin, each of which is one wider than the one within.
pub const SQUARES: usize = 10;

/// What is known of many Gaussian deviates.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Tally {
    /// The sums of the first and of the second deviates of all pairs.
    pub sums: [f64; 2],
    /// How many pairs are in each square, and not in the one within.
    pub counts: [u64; SQUARES],
}

impl Tally {
    /// The tally of some batches.
    pub fn of(batches: Range<u64>) -> Self {
        let mut tally = Self::default();
        batches.for_each(|batch| tally.add_batch(batch));
        tally
    }

    /// How many pairs of deviates there are.
    pub fn pairs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Makes the deviates of one batch by the polar method, and adds them.
    fn add_batch(&mut self, batch: u64) {
        let mut random = Generator::behind(2 * BATCH * batch, SEED);
        // A random number from -1 to 1. The conversion is exact.
        let mut uniform = || 2.0 * (random.number() as f64 / (1_u64 << BITS) as f64) - 1.0;
        for _ in 0..BATCH {
            let (x, y) = (uniform(), uniform());
            let square = x * x + y * y;
            if square <= 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                let (x, y) = (x * factor, y * factor);
                self.counts[x.abs().max(y.abs()) as usize] += 1;
                self.sums[0] += x;
                self.sums[1] += y;
            }
        }
    }
}
