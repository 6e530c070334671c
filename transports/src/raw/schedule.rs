//! When a device looks whether the kernel asks other sockets first.

use std::time::Duration;

use doorbell_core::time::Time;

/// After how many frames a device looks. A device that is not busy need not look.
const FRAMES: u32 = 4096;
/// How long a device waits between two looks. After each look that found another socket in front,
/// the pause is doubled, since that one may be as busy.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_secs(64);

/// Decides by counting frames, and then by the time, when a device looks.
pub struct Schedule {
    /// How many frames may be taken until something may be to be done. Zero while something is
    /// under way, which each turn looks after.
    left: u32,
    next: Time,
    pause: Duration,
}

impl Schedule {
    pub const fn new() -> Self {
        Self { left: FRAMES, next: Time::ZERO, pause: PAUSE }
    }

    /// Counts frames that were taken, and returns whether something may be to be done.
    #[inline]
    pub fn is_due(&mut self, taken: usize) -> bool {
        self.left = self.left.saturating_sub(taken as u32);
        self.left == 0
    }

    /// Returns whether it is time to look, and begins a look if it is.
    pub fn begins(&mut self, now: Time) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.pause;
        } else {
            self.left = FRAMES;
        }
        due
    }

    /// Records whether the look has found another socket in front.
    pub fn found(&mut self, somebody: bool) {
        self.pause = if somebody { (2 * self.pause).min(LONGEST) } else { PAUSE };
    }

    /// Records that nothing is under way any more.
    pub fn rests(&mut self) {
        self.left = FRAMES;
    }

    /// Makes the next look due at once.
    #[cfg(test)]
    pub fn hurries(&mut self) {
        (self.left, self.next) = (0, Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many seconds go by between looks of a device that is always busy.
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
