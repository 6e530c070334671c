//! Times: how long to wait for an answer before a frame is sent again.

use std::time::Duration;

/// The time since some moment, as the engine is told it.
pub type Time = Duration;

/// The times of a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The shortest time after which a frame is sent again.
    pub least: Duration,
    /// The longest such time, after several tries.
    pub most: Duration,
    /// How long a peer may take to answer before it counts as gone.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            least: Duration::from_millis(4),
            most: Duration::from_millis(64),
            patience: Duration::from_secs(10),
        }
    }
}

/// An estimate of the time that an answer takes, as TCP keeps one (RFC 6298).
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    timing: Timing,
    smoothed: Option<Duration>,
    variation: Duration,
}

impl RoundTrips {
    pub fn new(timing: Timing) -> Self {
        Self { timing, smoothed: None, variation: Duration::ZERO }
    }

    /// Adds a measurement to the estimate: the time from a frame that was sent once to its answer.
    pub fn measured(&mut self, took: Duration) {
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(took), took / 2),
            Some(before) => {
                self.variation = (self.variation * 3 + before.abs_diff(took)) / 4;
                self.smoothed = Some((before * 7 + took) / 8);
            }
        }
    }

    /// Returns how long to wait for an answer after `tries` tries before that one.
    pub fn time_out(&self, tries: u32) -> Duration {
        let usual = match self.smoothed {
            None => self.timing.least * 4,
            Some(smoothed) => smoothed + self.variation * 4,
        };
        let usual = usual.clamp(self.timing.least, self.timing.most);
        usual.saturating_mul(1 << tries.min(16)).min(self.timing.most)
    }
}
