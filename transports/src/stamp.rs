//! When frames came, as the kernel stamps them: by the system's clock of the time of day, which an
//! operator may set at any moment. Devices tell the time by another clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorbell_core::time::Time;

use crate::clock::Clock;

/// A time of day, in nanoseconds since 1970; zero if the kernel has not told it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// Makes a stamp of what the kernel tells.
    #[inline]
    pub const fn new(seconds: u64, nanos: u32) -> Self {
        Self(seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos as u64))
    }

    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_nanos() as u64)
    }
}

/// How long the two clocks are taken to run together, in nanoseconds.
const TOGETHER: u64 = 1_000_000;

/// The longest that a frame waits, as far as is known. A stamp that is older is of another time of
/// day.
const LONGEST_WAIT: u64 = 1_000_000_000;

/// The clock of the time of day, beside a device's.
#[derive(Clone, Copy, Default, Debug)]
pub struct WallClock {
    /// The times of both clocks when they were last read together.
    read: (Stamp, Time),
}

impl WallClock {
    /// Returns the time of a stamp by a device's clock.
    #[inline]
    pub fn time_of(&mut self, stamp: Stamp, clock: &Clock) -> Time {
        let (then, _) = self.read;
        if stamp.0.wrapping_sub(then.0.wrapping_sub(LONGEST_WAIT)) > LONGEST_WAIT + TOGETHER {
            self.read = (Stamp::now(), clock.now());
        }
        self.beside(stamp)
    }

    /// Returns the time of a stamp that is about as old as the last reading of the clocks. Nothing
    /// came later than now, and what has no stamp comes now.
    #[inline]
    fn beside(&self, stamp: Stamp) -> Time {
        let (then, time) = self.read;
        match stamp.0.checked_sub(then.0) {
            Some(later) => time + Duration::from_nanos(later.min(TOGETHER)),
            None if then.0 - stamp.0 > LONGEST_WAIT => time,
            None => Time::from_nanos(time.as_nanos().saturating_sub(then.0 - stamp.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Clocks that were read at noon, when the device had run for 100 s.
    fn clocks() -> WallClock {
        WallClock { read: (Stamp(1_000 * SECOND), Time::from_nanos(100 * SECOND)) }
    }

    fn nanos_of(stamp: u64) -> u64 {
        clocks().beside(Stamp(stamp)).as_nanos()
    }

    #[test]
    fn a_stamp_is_as_old_by_the_devices_clock_as_by_the_other() {
        assert_eq!(nanos_of(1_000 * SECOND - 7_000), 100 * SECOND - 7_000);
        assert_eq!(nanos_of(1_000 * SECOND + 7_000), 100 * SECOND + 7_000);
    }

    #[test]
    fn what_has_no_stamp_or_one_of_another_time_of_day_has_come_now() {
        assert_eq!(nanos_of(0), 100 * SECOND);
        assert_eq!(nanos_of(900 * SECOND), 100 * SECOND);
        assert_eq!(nanos_of(2_000 * SECOND), 100 * SECOND + TOGETHER);
    }

    #[test]
    fn clocks_are_read_again_when_a_stamp_is_not_of_about_that_time() {
        let (mut wall, clock) = (clocks(), Clock::new());
        let now = Stamp::now();
        let arrived = wall.time_of(now, &clock);
        assert!(arrived <= clock.now() && wall.read.0.0 >= now.0, "{wall:?}");
    }
}
