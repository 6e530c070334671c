//! Where chance comes from: one seed.

/// The generator SplitMix64: a counter, each value of which is mixed.
pub(super) struct Luck(u64);

impl Luck {
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Whether something of that probability happens.
    pub fn strikes(&mut self, probability: f64) -> bool {
        const BITS: u32 = 53;
        ((self.draw() >> (u64::BITS - BITS)) as f64) < probability * (1_u64 << BITS) as f64
    }

    /// A number from one to `most`, or zero where that is.
    pub fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(most)) >> u64::BITS) as u64 + u64::from(most > 0)
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
