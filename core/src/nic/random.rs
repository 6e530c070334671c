//! What must not be guessed: keys, addresses, queue pair numbers, first sequence numbers.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Where a NIC's randomness begins: the operating system's in production, a test's seed on the
/// fabric.
#[derive(Clone, Copy)]
pub struct Seed(pub [u8; 32]);

impl Seed {
    /// A seed for tests, where the same number must give the same run.
    pub fn from_number(number: u64) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        Self(seed)
    }
}

/// A stream that nobody who sees some of it can continue.
pub(crate) struct Random(ChaCha12Rng);

impl Random {
    pub fn new(seed: Seed) -> Self {
        Self(ChaCha12Rng::from_seed(seed.0))
    }

    pub fn u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}
