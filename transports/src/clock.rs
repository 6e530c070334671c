//! The system's monotonic clock, as devices tell it.

use std::time::Instant;

use doorbell_core::time::Time;

/// A clock that counts nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Makes a clock that begins now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Returns the time since the clock was made.
    #[inline]
    pub fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
