//! The common parts of the NAS Parallel Benchmarks: the problem classes, and the generator of
//! random numbers.

use clap::ValueEnum;

/// A problem class of the benchmarks, from the smallest on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Class {
    #[value(name = "S")]
    S,
    #[value(name = "W")]
    W,
    #[value(name = "A")]
    A,
}

/// Random numbers of the benchmarks are integers below 2 to this power.
pub const BITS: u32 = 46;

/// The factor of the generator, 5¹³.
const FACTOR: u64 = 1_220_703_125;

/// The linear congruential generator of the benchmarks: each number is the number before it times
/// 5¹³, modulo 2⁴⁶.
pub struct Generator(u64);

impl Generator {
    /// Makes a generator that goes on behind the first `drawn` numbers of the seed's sequence. It
    /// takes a few multiplications, however many numbers are passed over, so that each process
    /// begins at its own part of the sequence.
    pub fn behind(drawn: u64, seed: u64) -> Self {
        let (mut state, mut factor, mut left) = (seed, FACTOR, drawn);
        while left > 0 {
            if left % 2 == 1 {
                state = times(state, factor);
            }
            factor = times(factor, factor);
            left /= 2;
        }
        Self(state)
    }

    /// The next random number.
    pub fn number(&mut self) -> u64 {
        self.0 = times(self.0, FACTOR);
        self.0
    }
}

/// The product of two numbers, modulo 2⁴⁶.
fn times(a: u64, b: u64) -> u64 {
    // What wraps around is a multiple of 2⁶⁴, and so of 2⁴⁶.
    a.wrapping_mul(b) & ((1 << BITS) - 1)
}
