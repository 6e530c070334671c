//! Time as the protocol knows it: told from outside, never asked for.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, in nanoseconds of a clock that the device or the fabric keeps. It never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(
    /// One more than the nanoseconds, for queue pairs keep many times that may be none.
    NonZeroU64,
);

impl Time {
    /// The clock's beginning.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// The moment this many nanoseconds after the clock's beginning.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::ZERO.after(nanos)
    }

    /// Nanoseconds since the clock's beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// How long ago `earlier` was; nothing, if it is yet to come.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// The moment so many nanoseconds later.
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

/// In nanoseconds; half a thousand years at the most.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates after 584 years.
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
