//! The system's time, as devices tell it.

use std::time::Instant;

use doorbell_core::time::Time;

/// Nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// The time.
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
