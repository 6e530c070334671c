//! Random numbers that are the same on every machine.

/// A SplitMix64 generator of random numbers. Equal seeds give equal numbers.
pub struct Random(u64);

impl Random {
    /// Makes a generator from a seed of several numbers, such as a seed of the program and a rank.
    pub fn new(seeds: &[u64]) -> Self {
        seeds.iter().fold(Self(0), |mut random, seed| Self(random.bits() ^ seed))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next random number from 0 up to, and not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}
