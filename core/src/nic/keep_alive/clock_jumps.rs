//! Clock jumps: intervals in which the NIC was used and nobody read the clock.
//!
//! Reading the clock for each message would cost more than much of what the NIC does for a message.
//! So whatever is sent or received bears the time that was told last. That time is exact while
//! turns are taken one after another, and may be long past where a program posts after a pause. A
//! timer that is set from such a stamp expires too early. Jumps are noted when the clock is read
//! again, and say how late an event with a stamp may have happened: only a timer that expires looks
//! there.
//!
//! A process that was stopped, or had no processor, oversleeps its timers. It cannot say that its
//! peers were silent meanwhile, since nobody listened: before it judges a peer, it gives the peer
//! some time more.

use std::time::Duration;

use crate::time::Time;

/// The shortest jump that is noted. The shortest time-out is several times as long.
const NOTED: Duration = Duration::from_micros(200);

/// How many jumps are remembered, the latest: a thread that reads the clock each millisecond makes
/// one each time.
const REMEMBERED: usize = 16;

/// The latest jumps of the clock. See the [module](self).
#[derive(Default)]
pub(crate) struct ClockJumps {
    /// When each jump began and ended. A new one takes the place of the oldest.
    jumps: [(Time, Time); REMEMBERED],
    /// The index of the latest jump.
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

    /// Notes that timers which were `due` are looked at only now. If they are late by an eighth of
    /// the `patience` with peers, they were overslept, and peers are given more time. That happens
    /// once within the time of the patience at most: where timers are overslept all the time, peers
    /// that are gone are noticed nevertheless.
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
    fn a_stamp_from_before_a_jump_is_as_late_as_the_jump_is_long() {
        let mut jumps = ClockJumps::default();
        assert_eq!(jumps.latest_time(at(0)), at(0));
        jumps.note(at(0), at(300));
        jumps.note(at(300), at(1000));
        let found = [0, 1, 300, 301, 1000].map(|stamp| jumps.latest_time(at(stamp)));
        assert_eq!(found, [300, 1, 1000, 301, 1000].map(at));
    }

    #[test]
    fn a_short_jump_of_the_clock_is_not_noted() {
        let mut jumps = ClockJumps::default();
        jumps.note(at(100), at(299));
        assert_eq!(jumps.latest_time(at(100)), at(100));
    }

    #[test]
    fn a_nic_that_oversleeps_its_timers_gives_its_peers_an_eighth_of_their_time_more_once() {
        let (mut jumps, patience) = (ClockJumps::default(), Duration::from_micros(800));
        jumps.note_oversleeping(Some(at(1000)), at(1099), patience);
        assert_eq!(jumps.patience_end(patience, at(200)), at(1000));
        jumps.note_oversleeping(None, at(5000), patience);
        assert_eq!(jumps.patience_end(patience, at(200)), at(1000));
        jumps.note_oversleeping(Some(at(1000)), at(5000), patience);
        assert_eq!(jumps.patience_end(patience, at(200)), at(5100));
        assert_eq!(jumps.patience_end(patience, at(4900)), at(5700));
        jumps.note_oversleeping(Some(at(5100)), at(5700), patience);
        assert_eq!(
            jumps.patience_end(patience, at(200)),
            at(5100),
            "that is not forgiven again so soon"
        );
        jumps.note_oversleeping(Some(at(5100)), at(5800), patience);
        assert_eq!(jumps.patience_end(patience, at(200)), at(5900));
    }

    #[test]
    fn the_latest_jumps_are_remembered() {
        let mut jumps = ClockJumps::default();
        let count = 100;
        (0..count).for_each(|jump| jumps.note(at(jump * 1000), at(jump * 1000 + 900)));
        for jump in 1..count {
            let stamp = at(jump * 1000);
            let remembered = jump + REMEMBERED as u64 >= count;
            assert_eq!(jumps.latest_time(stamp) > stamp, remembered, "{jump}");
        }
    }
}
