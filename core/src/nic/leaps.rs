//! Leaps of the clock: intervals in which the NIC was used and nobody read the clock.
//!
//! Reading the clock for each message would cost more than much of what the NIC does for a message. So
//! whatever is sent or received bears the time that was told last, which is exact while turns are taken
//! one after another, and may be long past where a program posts after a pause. A timer that is set
//! from such a stamp goes off too early. Leaps are noted when the clock is read again, and say how late
//! that what bears a stamp may have happened: a timer that goes off looks there, and nothing else does.

use std::time::Duration;

use crate::time::Time;

/// The shortest leap that is noted. The shortest time-out is several times as long.
const NOTED: Duration = Duration::from_micros(200);

/// How many leaps are remembered, the latest: a watch that looks each millisecond makes one each time.
const REMEMBERED: usize = 16;

/// The latest leaps of the clock. See the [module](self).
#[derive(Default)]
pub(super) struct Leaps {
    /// From where to where, in a circle.
    leaps: [(Time, Time); REMEMBERED],
    newest: usize,
}

impl Leaps {
    /// Notes that the clock was not read between two times, in which the NIC may have been used.
    pub fn note(&mut self, from: Time, to: Time) {
        if to.since(from) >= NOTED {
            self.newest = (self.newest + 1) % REMEMBERED;
            self.leaps[self.newest] = (from, to);
        }
    }

    /// When what is stamped with a time that was told may have happened at the latest.
    #[inline]
    pub fn latest(&self, stamp: Time) -> Time {
        let (from, _) = self.leaps[self.newest];
        if stamp > from { stamp } else { self.find(stamp) }
    }

    #[cold]
    fn find(&self, stamp: Time) -> Time {
        let found = self.leaps.iter().filter(|(from, _)| *from == stamp).map(|&(_, to)| to);
        found.fold(stamp, Time::max)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_stamp_from_before_a_leap_is_as_late_as_the_leap_is_long() {
        let mut leaps = Leaps::default();
        assert_eq!(leaps.latest(at(0)), at(0));
        leaps.note(at(0), at(300));
        leaps.note(at(300), at(1000));
        let found = [0, 1, 300, 301, 1000].map(|stamp| leaps.latest(at(stamp)));
        assert_eq!(found, [300, 1, 1000, 301, 1000].map(at));
    }

    #[test]
    fn a_short_leap_is_none() {
        let mut leaps = Leaps::default();
        leaps.note(at(100), at(299));
        assert_eq!(leaps.latest(at(100)), at(100));
    }

    #[test]
    fn the_latest_leaps_are_remembered() {
        let mut leaps = Leaps::default();
        let count = 100;
        (0..count).for_each(|leap| leaps.note(at(leap * 1000), at(leap * 1000 + 900)));
        for leap in 1..count {
            let stamp = at(leap * 1000);
            let remembered = leap + REMEMBERED as u64 >= count;
            assert_eq!(leaps.latest(stamp) > stamp, remembered, "{leap}");
        }
    }
}
