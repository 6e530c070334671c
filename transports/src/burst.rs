//! Bursts: how many frames a device takes in one turn.

/// The number of frames that a device takes in one turn: one at first, and twice as many each time
/// that all of them were there.
///
/// A look for another frame fetches a cache line that the other processor has, or makes a system
/// call, and the NIC gets the first frame only after that look. In a stream, the next frame is
/// there already.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    allowed: usize,
}

impl Burst {
    /// The most frames of one turn.
    pub const MOST: usize = 64;

    /// Makes a burst that begins with a single frame.
    pub const fn new() -> Self {
        Self { allowed: 1 }
    }

    /// Takes frames by calls of `take`, which returns whether there was a frame. Returns how many
    /// frames there were.
    #[inline]
    pub fn take(&mut self, mut take: impl FnMut() -> bool) -> usize {
        let mut taken = 0;
        while taken < self.allowed && take() {
            taken += 1;
        }
        self.allowed = if taken == self.allowed { (2 * taken).min(Self::MOST) } else { 1 };
        taken
    }
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}
