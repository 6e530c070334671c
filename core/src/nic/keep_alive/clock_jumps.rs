//! Jumps of the clock: intervals in which the NIC was used and nobody read the clock.
//!
//! Reading the clock for each message would cost more than much of what the NIC does for a message.
//! So whatever is sent or received bears the time that was told last, which is exact while turns
//! are taken one after another, and may be long past where a program posts after a pause. A timer
//! that is set from such a stamp goes off too early. Jumps are noted when the clock is read again,
//! and say how late that what bears a stamp may have happened: a timer that goes off looks there,
//! and nothing else does.
//!
//! A process that was stopped, or had no processor, oversleeps its timers. It cannot say that its
//! peers were silent meanwhile, since nobody listened: before it judges one, it gives it some time
//! more.

use std::time::Duration;

use crate::time::Time;

/// The shortest leap that is noted. The shortest time-out is several times as long.
const NOTED: Duration = Duration::from_micros(200);

/// How many leaps are remembered, the latest: a watch that looks each millisecond makes one each
/// time.
const REMEMBERED: usize = 16;

/// The latest leaps of the clock. See the [module](self).
#[derive(Default)]
pub(crate) struct ClockJumps {
    /// When each leap began and ended. A new one takes the place of the oldest.
    jumps: [(Time, Time); REMEMBERED],
    /// Where the latest leap is.
    newest: usize,
    /// When timers were last found to be overslept.
    overslept_at: Option<Time>,
}

impl ClockJumps {
    /// Notes that the clock was not read between two times, in which the NIC may have been used.
    pub fn note(&mut self, from: Time, to: Time) {
        if to.since(from) >= NOTED {
            self.newest = (self.newest + 1) % REMEMBERED;
            self.jumps[self.newest] = (from, to);
        }
    }

    /// Notes that timers which were `due` are seen to only now: by an eighth of the `patience` with
    /// peers too late, they were overslept. That is forgiven once within such a time: where it
    /// happens all the time, peers that are gone are noticed nevertheless.
    #[inline]
    pub fn note_oversleeping(&mut self, due: Option<Time>, now: Time, patience: Duration) {
        if due.is_some_and(|due| now >= due + patience / 8)
            && self.overslept_at.is_none_or(|returned| now >= returned + patience)
        {
            self.overslept_at = Some(now);
        }
    }

    /// The time at which the patience with a peer is over that has been silent since `since`. After
    /// timers were overslept, an eighth of the patience is left in any case.
    pub fn patience_end(&self, patience: Duration, since: Time) -> Time {
        let end = since + patience;
        self.overslept_at.map_or(end, |returned| end.max(returned + patience / 8))
    }

    /// The latest time at which an event with this stamp may have happened.
    #[inline]
    pub fn latest_time(&self, stamp: Time) -> Time {
        let (from, _) = self.jumps[self.newest];
        if stamp > from { stamp } else { self.latest_in_jumps(stamp) }
    }

    #[cold]
    fn latest_in_jumps(&self, stamp: Time) -> Time {
        let found = self.jumps.iter().filter(|(from, _)| *from == stamp).map(|&(_, to)| to);
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
        let mut leaps = ClockJumps::default();
        assert_eq!(leaps.latest_time(at(0)), at(0));
        leaps.note(at(0), at(300));
        leaps.note(at(300), at(1000));
        let found = [0, 1, 300, 301, 1000].map(|stamp| leaps.latest_time(at(stamp)));
        assert_eq!(found, [300, 1, 1000, 301, 1000].map(at));
    }

    #[test]
    fn a_short_leap_is_none() {
        let mut leaps = ClockJumps::default();
        leaps.note(at(100), at(299));
        assert_eq!(leaps.latest_time(at(100)), at(100));
    }

    #[test]
    fn who_oversleeps_its_timers_gives_its_peers_an_eighth_of_their_time_more_once() {
        let (mut leaps, patience) = (ClockJumps::default(), Duration::from_micros(800));
        leaps.note_oversleeping(Some(at(1000)), at(1099), patience);
        assert_eq!(leaps.patience_end(patience, at(200)), at(1000));
        leaps.note_oversleeping(None, at(5000), patience);
        assert_eq!(leaps.patience_end(patience, at(200)), at(1000));
        leaps.note_oversleeping(Some(at(1000)), at(5000), patience);
        assert_eq!(leaps.patience_end(patience, at(200)), at(5100));
        assert_eq!(leaps.patience_end(patience, at(4900)), at(5700));
        leaps.note_oversleeping(Some(at(5100)), at(5700), patience);
        assert_eq!(
            leaps.patience_end(patience, at(200)),
            at(5100),
            "that is not forgiven again so soon"
        );
        leaps.note_oversleeping(Some(at(5100)), at(5800), patience);
        assert_eq!(leaps.patience_end(patience, at(200)), at(5900));
    }

    #[test]
    fn the_latest_leaps_are_remembered() {
        let mut leaps = ClockJumps::default();
        let count = 100;
        (0..count).for_each(|leap| leaps.note(at(leap * 1000), at(leap * 1000 + 900)));
        for leap in 1..count {
            let stamp = at(leap * 1000);
            let remembered = leap + REMEMBERED as u64 >= count;
            assert_eq!(leaps.latest_time(stamp) > stamp, remembered, "{leap}");
        }
    }
}
