//! Who is sent to often enough to have a socket of its own.

use std::collections::HashMap;
use std::net::SocketAddr;

/// How many are counted at once: with one more, counting begins anew.
const MOST: usize = 1024;
/// How many frames are often.
const OFTEN: u32 = 16;

/// Frames counted by whom they were for.
#[derive(Default)]
pub struct Often {
    counts: HashMap<SocketAddr, u32>,
}

impl Often {
    /// Counts a frame, and says whether it is the last of many.
    pub fn count(&mut self, to: SocketAddr) -> bool {
        if self.counts.len() == MOST {
            self.counts.clear();
        }
        let count = self.counts.entry(to).or_default();
        *count += 1;
        let often = *count == OFTEN;
        if often {
            self.counts.remove(&to);
        }
        often
    }
}
