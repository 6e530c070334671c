//! Slowing down when a standard peer sends congestion notifications (CNPs), as adapters do for packets
//! that switches have marked.
//!
//! It is DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015) with
//! a window in place of a rate: the window shrinks by half the share of the recent round trips in
//! which notifications came, returns halfway to where it was with each of a few round trips without
//! one, and then grows by steps. Without notifications it is as large as it may be, as if nothing
//! were controlled.

use super::{Algorithm, RoundTrip};

/// How fast the share of round trips with notifications is learned.
const LEARNED: f32 = 1.0 / 16.0;
/// How many round trips without a notification bring the window back towards where it was.
const RECOVERING: u32 = 5;
/// The packets by which it grows in each that follows.
const STEP: f32 = 0.5;
/// The fewest packets that may be under way, whatever notifications come.
const LEAST: f32 = 1.0;

/// The state of the algorithm.
pub(crate) struct ByNotifications {
    window: f32,
    /// Where the window was before it shrank, and where it recovers to.
    target: f32,
    /// The share of round trips in which notifications came, smoothed.
    share: f32,
    /// How many round trips there were since one with a notification.
    calm: u32,
}

impl ByNotifications {
    /// Begins with a window of `most` packets.
    pub fn new(most: u32) -> Self {
        Self { window: most as f32, target: most as f32, share: 1.0, calm: u32::MAX }
    }
}

impl Algorithm for ByNotifications {
    fn round_trip(&mut self, seen: &RoundTrip, most: f32) -> f32 {
        if seen.marked > 0 {
            (self.target, self.calm) = (self.window, 0);
            self.window *= 1.0 - self.share / 2.0;
            self.share += (1.0 - self.share) * LEARNED;
        } else {
            self.share -= self.share * LEARNED;
            self.calm = self.calm.saturating_add(1);
            if self.calm > RECOVERING {
                self.target += STEP;
            }
            self.target = self.target.min(most);
            self.window = (self.window + self.target) / 2.0;
        }
        self.window = self.window.clamp(LEAST, most);
        self.window
    }

    fn timed_out(&mut self, _: bool) -> f32 {
        // Loss is repaired by going back, which slows down enough.
        self.window
    }

    fn was_early(&mut self, _: f32) -> f32 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: f32 = 256.0;

    fn round(marked: u32) -> RoundTrip {
        RoundTrip { delay: None, shortest: u64::MAX, arrived: 10, marked, lost: 0, spread: false }
    }

    #[test]
    fn without_notifications_nothing_is_slowed_down() {
        let mut algorithm = ByNotifications::new(256);
        assert!((0..100).all(|_| algorithm.round_trip(&round(0), MOST) == MOST));
    }

    #[test]
    fn the_first_notification_halves_the_window_and_quiet_brings_it_back() {
        let mut algorithm = ByNotifications::new(256);
        assert_eq!(algorithm.round_trip(&round(3), MOST), 128.0);
        let windows: Vec<_> = (0..5).map(|_| algorithm.round_trip(&round(0), MOST)).collect();
        assert_eq!(windows, [192.0, 224.0, 240.0, 248.0, 252.0]);
    }

    #[test]
    fn notifications_without_end_leave_one_packet() {
        let mut algorithm = ByNotifications::new(256);
        for _ in 0..100 {
            algorithm.round_trip(&round(1), MOST);
        }
        assert_eq!(algorithm.window, LEAST);
        // Where nothing comes any more, it is not at once where it was.
        assert!((0..5).all(|_| algorithm.round_trip(&round(0), MOST) < 2.0));
    }
}
