//! Time: the protocol is told the time, and never reads a clock.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, in nanoseconds of a clock that the device or the fabric keeps. The clock never
/// goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(
    /// The nanoseconds plus one. Queue pairs keep many optional times, and an `Option` of a nonzero
    /// number takes no more room.
    NonZeroU64,
);

impl Time {
    /// The time at which the clock began.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// Returns the time `nanos` nanoseconds after the clock began.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::ZERO.after(nanos)
    }

    /// Returns the nanoseconds since the clock began.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns how long ago `earlier` was, or zero if it is yet to come.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Returns the time `nanos` nanoseconds later.
    #[inline]
    pub(crate) const fn after(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Returns a duration in nanoseconds, at most half a thousand years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Adds a duration, up to the last time after 584 years.
    #[inline]
    fn add(self, delay: Duration) -> Self {
        self.after(nanos(delay))
    }
}

impl Sub for Time {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.as_nanos()))
    }
}
