//! Probing the peers of streams that wait for an answer.
//!
//! The death of a peer is noticed at once while requests are under way, but otherwise only after
//! the NIC's idle time of half a minute. A program that has just sent a request waits for an answer
//! as a rule, and should not wait that long. So the peer is probed half a second after the last
//! write, a second after, two seconds after, and so on. After six probes a stream counts as idle.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::hub::Hub;
use crate::link::Link;

/// How often the prober looks for peers to probe.
const TICK: Duration = Duration::from_millis(500);

/// The last tick at which a peer is probed, 16 seconds after the write. Probes go out at ticks
/// whose number is a power of two.
const LAST: u32 = 32;

/// Marks a stream that waits for no answer: it wrote nothing, the answer has come, or the stream
/// counts as idle.
const NOTHING: u32 = u32::MAX;

/// The ticks that a stream has waited for an answer.
pub(crate) struct Question(AtomicU32);

impl Default for Question {
    fn default() -> Self {
        Self(AtomicU32::new(NOTHING))
    }
}

impl Question {
    /// Takes note that bytes were sent.
    #[inline]
    pub fn is_asked(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::SeqCst);
        }
    }

    /// Returns whether the stream waits for an answer.
    fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NOTHING
    }

    /// Takes note that bytes were received.
    #[inline]
    pub fn is_answered(&self) {
        if self.0.load(Ordering::Relaxed) != NOTHING {
            self.0.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Counts a tick. Returns whether the peer is to be probed, or `None` if the stream waits for
    /// no answer.
    fn tick(&self) -> Option<bool> {
        let more = |ticks: u32| match ticks {
            NOTHING => None,
            LAST.. => Some(NOTHING),
            _ => Some(ticks + 1),
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(before < LAST && (before + 1).is_power_of_two())
    }
}

/// Whether the task runs that probes peers. It runs while a stream waits for an answer.
#[derive(Default)]
pub(crate) struct Prober(AtomicBool);

impl Prober {
    /// Starts the task for a link that waits for an answer, if the task does not run.
    #[inline]
    pub fn starts(&self, link: &Link) {
        if !self.0.load(Ordering::SeqCst) && !self.0.swap(true, Ordering::SeqCst) {
            link.hub.runtime.spawn(probes(Arc::downgrade(&link.hub)));
        }
    }
}

/// Probes peers until no stream waits for an answer.
async fn probes(hub: Weak<Hub>) {
    loop {
        tokio::time::sleep(TICK).await;
        // The NIC is not to stay open for this task.
        let Some(hub) = hub.upgrade() else { return };
        for link in hub.links() {
            if link.question.tick() == Some(true) {
                link.connection.probe();
            }
        }
        let waits = || hub.links().iter().any(|link| link.question.is_open());
        if waits() {
            continue;
        }
        hub.prober.0.store(false, Ordering::SeqCst);
        // A stream that was written to meanwhile has seen that this task still runs.
        if !waits() || hub.prober.0.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_probed_for_ever_less_often_and_then_not_at_all() {
        let question = Question::default();
        assert_eq!(question.tick(), None);
        question.is_asked();
        let probed: Vec<_> = (1..=LAST).filter(|_| question.tick() == Some(true)).collect();
        assert_eq!(probed, [1, 2, 4, 8, 16, 32]);
        assert_eq!((question.tick(), question.tick()), (Some(false), None));
        question.is_asked();
        assert_eq!(question.tick(), Some(true));
        question.is_answered();
        assert_eq!(question.tick(), None);
    }
}
