//! How much is measured: a number of rounds, or a time.

use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Amount {
    Times(u64),
    For(Duration),
}

impl Amount {
    /// Returns whether this round is the last one. Rounds are counted from 1.
    #[inline]
    pub fn is_over(self, round: u64, passed: impl FnOnce() -> Duration) -> bool {
        match self {
            Self::Times(times) => round >= times,
            Self::For(time) => passed() >= time,
        }
    }

    /// The number behind the last packet, if that is known at the beginning.
    pub fn packets(self, of_a_message: u64) -> u64 {
        match self {
            Self::Times(times) => times.saturating_mul(of_a_message),
            Self::For(_) => u64::MAX,
        }
    }

    /// Whether the time is over, if it is a time.
    #[inline]
    pub fn has_passed(self, passed: impl FnOnce() -> Duration) -> bool {
        matches!(self, Self::For(time) if passed() >= time)
    }
}
