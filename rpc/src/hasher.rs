//! A hasher for numbers that nobody chooses to collide, as those that the program has drawn.

use std::hash::{BuildHasherDefault, Hasher};

/// Tables by numbers are hashed by this.
pub type ByNumber = BuildHasherDefault<Spread>;

/// Multiplies a number, so that its bits are spread.
#[derive(Default, Clone)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte) ^ self.0);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
