//! Whether a waiting task spins before it sleeps, judged by recent traffic.
//!
//! Spinning pays if the next message comes within the time that is spun. Where a message comes once
//! in a while, each spin is in vain, and takes more of the processor than the message itself.

use std::time::Duration;

use doorbell_core::nic::Counters;
use doorbell_core::time::Time;

/// How many times the spinning time must pass since earlier messages for a message to count as a
/// lone one.
const APART: u32 = 8;
/// The shortest time since earlier messages after which a message counts as a lone one, however
/// short the spinning time is.
const LEAST_APART: Duration = Duration::from_micros(400);
/// The highest score of lone messages.
const MOST: u64 = 8;
/// The points that a lone message adds to the score. A message soon after another takes one away.
const BY_ITSELF: u64 = 2;

/// The recent traffic of a NIC, sampled when a task goes to sleep.
#[derive(Default, Debug)]
pub(crate) struct Traffic {
    /// The packets that were received until the last sleep that followed any.
    received: u64,
    /// The time when that sleep began.
    slept: Time,
    /// The score of lone messages.
    score: u64,
    sparse: bool,
}

impl Traffic {
    /// Notes that a sleep begins, before which a program spins for `spin` at the most.
    ///
    /// Acknowledgements are not counted, since no task spins for them. A sleep since which nothing
    /// came is not noted, since a sleep that waits for an answer follows each call.
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

    /// Returns whether messages come alone or few at a time, so that a task sleeps as soon as
    /// nothing comes.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(50);

    /// Lets a program sleep at the given times in microseconds, each time after the given number of
    /// packets, and returns whether the program spins the next time.
    fn spins(sleeps: impl IntoIterator<Item = (u64, u64)>) -> bool {
        let (mut traffic, mut counters) = (Traffic::default(), Counters::default());
        for (at, came) in sleeps {
            counters.received += came;
            traffic.sleeps(Time::from_nanos(at * 1000), &counters, SPIN);
        }
        !traffic.is_sparse()
    }

    #[test]
    fn a_program_stops_spinning_once_messages_come_one_by_one_and_far_apart() {
        assert!(spins((1..=3).map(|call| (1000 * call, 1))));
        assert!(!spins((1..=4).map(|call| (1000 * call, 1))));
    }

    #[test]
    fn a_sleep_that_waits_for_an_answer_does_not_count_as_one_between_messages() {
        let call = |call: u64| [(1000 * call, 0), (1000 * call + 150, 1)];
        assert!(!spins((1..=4).flat_map(call)));
    }

    #[test]
    fn a_program_spins_for_bursts_of_three_messages_but_not_of_two() {
        assert!(!spins((1..=8).map(|pair| (2000 * pair, 2))));
        assert!(spins((1..=100).map(|burst| (2000 * burst, 3))));
    }

    #[test]
    fn a_program_spins_again_once_messages_follow_each_other_closely() {
        let lone = (1..=9).map(|call| (1000 * call, 1));
        let soon = |count: u64| (1..=count).map(|call| (9000 + 150 * call, 1));
        assert!(!spins(lone.clone().chain(soon(7))));
        assert!(spins(lone.clone().chain(soon(8))));
        assert!(spins(lone.chain([(10_000, 11)])), "many at once");
    }

    #[test]
    fn acknowledgements_do_not_count_as_messages() {
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
