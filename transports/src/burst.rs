//! How many frames to take at once.

/// One frame first, and twice as many each time that all of them were there.
///
/// To look for another frame is to fetch a cache line that the other processor has, or to make a
/// system call, and whoever waits for the first one waits for that, too. In a stream the frame is
/// there already.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    allowed: usize,
}

impl Burst {
    /// The most frames of one turn.
    pub const MOST: usize = 64;

    /// One that begins with a single frame.
    pub const fn new() -> Self {
        Self { allowed: 1 }
    }

    /// Takes frames by `take`, which says whether there was one; returns how many there were.
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
