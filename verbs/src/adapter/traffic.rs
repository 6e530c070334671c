//! Whether to spin before sleeping: not where a few messages come now and then.
//!
//! To spin pays where the next message comes within the time that is spun. Where a message comes
//! once in a while, each spin is in vain, and takes more of the processor than the message itself.

use std::time::Duration;

use doorbell_core::nic::Counters;
use doorbell_core::time::Time;

/// A message that comes this many times the time that is spun after those before comes by itself,
/// unless that is less than the least such time.
const APART: u32 = 8;
const LEAST_APART: Duration = Duration::from_micros(400);
/// The most that the score of messages by themselves can be.
const MOST: u64 = 8;
/// What a message by itself adds to the score. One that comes soon after another takes one away.
const BY_ITSELF: u64 = 2;

/// What has arrived at a NIC between sleeps.
#[derive(Default, Debug)]
pub(crate) struct Traffic {
    /// The packets received until the last sleep that followed any.
    received: u64,
    /// When that sleep began.
    slept: Time,
    /// Whether messages come by themselves rather than soon after others, lately.
    score: u64,
    sparse: bool,
}

impl Traffic {
    /// Notes that a sleep begins, before which a program spins for `spin` at the most.
    ///
    /// Acknowledgements are not counted: nobody spins for them. A sleep since which nothing came is
    /// not noted, since one that waits for an answer follows each call.
    pub fn sleeps(&mut self, now: Time, counters: &Counters, spin: Duration) {
        let received = counters.received - counters.acks_received;
        let came = received - self.received;
        if came == 0 {
            return;
        }
        let apart = now.since(self.slept) >= spin.saturating_mul(APART).max(LEAST_APART);
        let (more, less) = if apart { (BY_ITSELF, came - 1) } else { (0, came) };
        self.score = (self.score + more).saturating_sub(less).min(MOST);
        self.sparse = self.score == MOST || self.sparse && self.score > 0;
        (self.received, self.slept) = (received, now);
    }

    /// Whether to sleep as soon as nothing comes: messages come by themselves, or few together.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(50);

    /// Lets a program sleep at times in microseconds, before each of which so many packets came,
    /// and says whether it spins the next time.
    fn spins(sleeps: impl IntoIterator<Item = (u64, u64)>) -> bool {
        let (mut traffic, mut counters) = (Traffic::default(), Counters::default());
        for (at, came) in sleeps {
            counters.received += came;
            traffic.sleeps(Time::from_nanos(at * 1000), &counters, SPIN);
        }
        !traffic.is_sparse()
    }

    #[test]
    fn a_program_spins_no_more_once_messages_come_one_by_one_and_long_after_another() {
        assert!(spins((1..=3).map(|call| (1000 * call, 1))));
        assert!(!spins((1..=4).map(|call| (1000 * call, 1))));
    }

    #[test]
    fn a_sleep_for_an_answer_is_not_taken_for_one_between_messages() {
        let call = |call: u64| [(1000 * call, 0), (1000 * call + 150, 1)];
        assert!(!spins((1..=4).flat_map(call)));
    }

    #[test]
    fn a_program_does_not_spin_for_the_second_of_two_messages_but_for_more() {
        assert!(!spins((1..=8).map(|pair| (2000 * pair, 2))));
        assert!(spins((1..=100).map(|burst| (2000 * burst, 3))));
    }

    #[test]
    fn a_program_spins_again_once_messages_follow_each_other() {
        let lone = (1..=9).map(|call| (1000 * call, 1));
        let soon = |count: u64| (1..=count).map(|call| (9000 + 150 * call, 1));
        assert!(!spins(lone.clone().chain(soon(7))));
        assert!(spins(lone.clone().chain(soon(8))));
        assert!(spins(lone.chain([(10_000, 11)])), "many at once");
    }

    #[test]
    fn acknowledgements_are_not_messages() {
        let (mut traffic, mut counters) = (Traffic::default(), Counters::default());
        for call in 1..=4 {
            counters.received += 2;
            counters.acks_received += 1;
            traffic.sleeps(Time::from_nanos(call * 1_000_000), &counters, SPIN);
            (counters.received, counters.acks_received) =
                (counters.received + 1, counters.acks_received + 1);
            traffic.sleeps(Time::from_nanos(call * 1_000_000 + 70_000), &counters, SPIN);
        }
        assert!(traffic.is_sparse());
    }
}
