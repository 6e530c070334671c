//! Who is sent to often enough to have a socket of its own.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

/// How many are counted at once.
const PLACES: usize = 64;
/// How many frames are often.
const OFTEN: u32 = 16;

/// Frames counted by whom they were for, in a few places that the hash of an address says: where
/// two share one, each takes from the other's count.
pub struct Often {
    hasher: RandomState,
    places: [Option<(SocketAddr, u32)>; PLACES],
}

impl Often {
    pub fn new() -> Self {
        Self { hasher: RandomState::new(), places: [None; PLACES] }
    }

    /// Counts a frame, and says whether it is one of many.
    pub fn count(&mut self, to: SocketAddr) -> bool {
        let place = &mut self.places[self.hasher.hash_one(to) as usize % PLACES];
        let count = match place {
            Some((address, count)) if *address == to => *count + 1,
            Some((_, count)) if *count > 0 => {
                *count -= 1;
                return false;
            }
            _ => 1,
        };
        let often = count == OFTEN;
        *place = Some((to, if often { 0 } else { count }));
        often
    }
}
