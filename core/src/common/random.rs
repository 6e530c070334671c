//! What must not be guessed: keys, addresses, queue pair numbers, first sequence numbers, GUIDs.

use std::collections::VecDeque;
use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::wire::CaGuid;

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

    /// A GUID for a NIC and its connection manager, which tells this run from all others: of this
    /// seed always the same, and nothing about it tells what else is drawn from the seed.
    #[must_use]
    pub fn guid(self) -> CaGuid {
        let mut stream = ChaCha12Rng::from_seed(self.0);
        stream.set_stream(1);
        // Zero may stand for none.
        CaGuid(stream.next_u64().max(1))
    }
}

/// Without the seed, which is not to be guessed.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
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

/// Takes one of the older half of the places that are free, the oldest of which is in front, and
/// puts the front one where that was. So nobody can tell from one place which is next, and each
/// rests for about as long as half of the others take to be used.
pub(crate) fn take_at_random(free: &mut VecDeque<u32>, random: &mut Random) -> Option<u32> {
    let older = free.len().div_ceil(2) as u64;
    // The product of 32 random bits and the length, without the lower half: evenly spread.
    let chosen = (u64::from(random.u32()) * older) >> 32;
    free.swap_remove_front(chosen as usize)
}
