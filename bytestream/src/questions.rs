//! Questions: streams that have said something and wait for an answer.
//!
//! A peer that dies while nothing is under way would be noticed only after the idle time of half a
//! minute. Whoever has just asked something waits for an answer, as a rule, and is not to wait so
//! long: the peer is probed half a second after what was sent last, a second after, two, and so on.
//! A stream that stays idle is left alone after six probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::hub::Hub;
use crate::link::Link;

/// How often it is looked whom to probe.
const TICK: Duration = Duration::from_millis(500);

/// The last tick at which a peer is probed: after 16 seconds. The numbers of such ticks are powers
/// of two.
const LAST: u32 = 32;

/// That nothing was asked, or the answer has come, or was waited for long enough.
const NOTHING: u32 = u32::MAX;

/// For how many ticks a stream has waited for an answer.
pub(crate) struct Question(AtomicU32);

impl Default for Question {
    fn default() -> Self {
        Self(AtomicU32::new(NOTHING))
    }
}

impl Question {
    /// Something was sent.
    #[inline]
    pub fn is_asked(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::SeqCst);
        }
    }

    /// Whether an answer is waited for.
    fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NOTHING
    }

    /// Something has come.
    #[inline]
    pub fn is_answered(&self) {
        if self.0.load(Ordering::Relaxed) != NOTHING {
            self.0.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// A tick has passed. Whether the peer is to be probed; nothing, if no answer is waited for.
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

/// The task that looks whom to probe, while somebody waits for an answer.
#[derive(Default)]
pub(crate) struct Prober(AtomicBool);

impl Prober {
    /// A stream has asked something.
    #[inline]
    pub fn starts(&self, link: &Link) {
        if !self.0.load(Ordering::SeqCst) && !self.0.swap(true, Ordering::SeqCst) {
            let hub = link.hub.clone();
            link.hub.runtime.spawn(probes(hub));
        }
    }
}

/// Probes peers until nobody waits for an answer any more.
async fn probes(hub: Arc<Hub>) {
    loop {
        tokio::time::sleep(TICK).await;
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
        // Whoever has asked something meanwhile has seen that this still runs.
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
