//! When a device looks whether others are asked before it.

use std::time::Duration;

use doorbell_core::time::Time;

/// After so many frames: who is not busy does not mind.
const FRAMES: u32 = 4096;
/// And after this time; after each look that found somebody, twice the time that it was, for that
/// one may be as busy.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(64);

/// Counts frames, and then the time.
pub struct Schedule {
    /// How many frames there are until something is to be done. None while something is under way:
    /// then it is looked at in each turn.
    left: u32,
    next: Time,
    pause: Duration,
}

impl Schedule {
    pub const fn new() -> Self {
        Self { left: FRAMES, next: Time::ZERO, pause: PAUSE }
    }

    /// Whether something may be to be done, so many frames having been taken.
    #[inline]
    pub fn is_due(&mut self, taken: usize) -> bool {
        self.left = self.left.saturating_sub(taken as u32);
        self.left == 0
    }

    /// Begins a look, if it is time.
    pub fn begins(&mut self, now: Time) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.pause;
        } else {
            self.left = FRAMES;
        }
        due
    }

    /// The look has found that somebody is asked before, or nobody.
    pub fn found(&mut self, somebody: bool) {
        self.pause = if somebody { (2 * self.pause).min(LONGEST) } else { PAUSE };
    }

    /// Nothing is under way any more.
    pub fn rests(&mut self) {
        self.left = FRAMES;
    }

    /// Looks again at once.
    #[cfg(test)]
    pub fn hurries(&mut self) {
        (self.left, self.next) = (0, Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many seconds go by between looks of a device that is always busy.
    fn pauses(found: [bool; 9]) -> [u64; 9] {
        let mut schedule = Schedule::new();
        let mut second = 0;
        found.map(|somebody| {
            let before = second;
            while !schedule.begins(Time::ZERO + Duration::from_secs(second)) {
                second += 1;
            }
            schedule.found(somebody);
            second - before
        })
    }

    #[test]
    fn who_finds_somebody_each_time_looks_less_often() {
        assert_eq!(pauses([true; 9]), [0, 1, 2, 4, 8, 16, 32, 64, 64]);
        let found = [true, true, false, true, false, false, true, true, true];
        assert_eq!(pauses(found), [0, 1, 2, 4, 1, 2, 1, 1, 2]);
    }

    #[test]
    fn nothing_is_looked_at_before_there_were_many_frames() {
        let mut schedule = Schedule::new();
        assert!((0..63).all(|_| !schedule.is_due(64)) && !schedule.is_due(0));
        assert!(schedule.is_due(64) && schedule.is_due(0), "until it is looked at");
        assert!(schedule.begins(Time::ZERO) && schedule.is_due(0), "while it is under way");
        schedule.rests();
        assert!(!schedule.is_due(64));
    }
}
