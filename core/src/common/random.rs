//! Seeded randomness for numbers that strangers must not guess: keys, addresses, queue pair numbers,
//! first sequence numbers, GUIDs.

use std::collections::VecDeque;
use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::wire::CaGuid;

/// The seed of a NIC's randomness: random bytes of the operating system in production, a test's
/// number on the fabric.
#[derive(Clone, Copy)]
pub struct Seed(pub [u8; 32]);

impl Seed {
    /// Makes a seed for tests, where the same number must give the same run.
    pub fn from_number(number: u64) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        Self(seed)
    }

    /// Returns the GUID of a NIC and its connection manager, which distinguishes this run from all
    /// others. A seed always gives the same GUID, and the GUID tells nothing about other numbers
    /// that are drawn from the seed.
    #[must_use]
    pub fn guid(self) -> CaGuid {
        let mut stream = ChaCha12Rng::from_seed(self.0);
        stream.set_stream(1);
        // Zero is not used, since it may stand for no GUID.
        CaGuid(stream.next_u64().max(1))
    }
}

/// Shows the type without the seed, which must stay secret.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
    }
}

/// A stream of random numbers. Whoever sees some of them can't compute the others.
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

/// Takes a random place out of the older half of the free places, the oldest of which is in front,
/// and puts the front one in its position. So nobody can tell from one place which place is next,
/// and each place stays unused for about as long as half of the others take to be used.
pub(crate) fn take_at_random(free: &mut VecDeque<u32>, random: &mut Random) -> Option<u32> {
    let older = free.len().div_ceil(2) as u64;
    // The upper half of the product of 32 random bits and the length is evenly distributed.
    let chosen = (u64::from(random.u32()) * older) >> 32;
    free.swap_remove_front(chosen as usize)
}
