//! The pauses between attempts.

use std::time::Duration;

/// The pauses of a channel between its attempts to connect, or of [`Retries`](crate::Retries)
/// between the attempts of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The pause after the first attempt that fails.
    pub first: Duration,
    /// The longest pause between two attempts. Each pause is twice as long as the one before, up to
    /// this. A pause is drawn at random from the upper half of that, so that clients which have
    /// lost the same server do not come back at the same moments.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), most: Duration::from_secs(2) }
    }
}

impl Backoff {
    /// Draws the pause behind the attempt that failed as the last of so many.
    pub(crate) fn pause(self, failed: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failed.saturating_sub(1).min(20));
        let longest = doubled.min(self.most);
        // The precision of 16 bits is enough.
        let part = u32::try_from(crate::random() >> 48).unwrap_or_default();
        longest / 2 + longest / 2 / (1 << 16) * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_at_least_half_of_it() {
        let backoff =
            Backoff { first: Duration::from_millis(50), most: Duration::from_millis(300) };
        for (failed, longest) in [(1, 50), (2, 100), (3, 200), (4, 300), (5, 300), (1000, 300)] {
            let longest = Duration::from_millis(longest);
            let pause = backoff.pause(failed);
            assert!((longest / 2..=longest).contains(&pause), "{failed}: {pause:?}");
        }
        let forever = Backoff { first: Duration::MAX, most: Duration::MAX };
        assert!(forever.pause(1) >= Duration::MAX / 2);
    }
}
