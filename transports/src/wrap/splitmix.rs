//! The generator of random numbers that decides which faults strike.

/// The random number generator SplitMix64, which mixes the values of a counter.
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Draws a random number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Draws whether something of this probability happens.
    pub fn strikes(&mut self, probability: f64) -> bool {
        const BITS: u32 = 53;
        ((self.draw() >> (u64::BITS - BITS)) as f64) < probability * (1_u64 << BITS) as f64
    }

    /// Draws a number from 1 to `most`, or 0 if `most` is 0.
    pub fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(most)) >> u64::BITS) as u64 + u64::from(most > 0)
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
