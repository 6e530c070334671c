//! How long a stream has waited for an answer of its peer.
//!
//! The death of a peer is noticed at once while requests are under way, but otherwise only after
//! the NIC's idle time of half a minute. A program that has just sent a request usually waits for
//! an answer, and should not wait that long. So the peer is probed half a second after the last
//! write, a second after, two seconds after, and so on. After six probes the stream counts as idle.

use std::sync::atomic::{AtomicU32, Ordering};

/// The last tick at which a peer is probed, 16 seconds after the write. Peers are probed at ticks
/// whose number is a power of two.
const LAST: u32 = 32;

/// Marks a stream that waits for no answer: nothing was written, the answer has come, or the stream
/// counts as idle.
const NOTHING: u32 = u32::MAX;

/// The number of ticks for which a stream has waited for an answer. A tick is half a second.
pub(crate) struct Question(AtomicU32);

impl Default for Question {
    fn default() -> Self {
        Self(AtomicU32::new(NOTHING))
    }
}

impl Question {
    /// Notes that bytes were sent, which the peer may answer.
    #[inline]
    pub fn ask(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::SeqCst);
        }
    }

    /// Returns whether the stream waits for an answer.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NOTHING
    }

    /// Notes that bytes were received.
    #[inline]
    pub fn answer(&self) {
        if self.0.load(Ordering::Relaxed) != NOTHING {
            self.0.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Counts a tick of half a second. Returns whether the peer is to be probed, or `None` if the
    /// stream waits for no answer.
    pub fn tick(&self) -> Option<bool> {
        let more = |ticks: u32| match ticks {
            NOTHING => None,
            LAST.. => Some(NOTHING),
            _ => Some(ticks + 1),
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(before < LAST && (before + 1).is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_answer_is_probed_less_and_less_often_and_then_not_at_all() {
        let question = Question::default();
        assert_eq!(question.tick(), None);
        question.ask();
        let probed: Vec<_> = (1..=LAST).filter(|_| question.tick() == Some(true)).collect();
        assert_eq!(probed, [1, 2, 4, 8, 16, 32]);
        assert_eq!((question.tick(), question.tick()), (Some(false), None));
        question.ask();
        assert_eq!(question.tick(), Some(true));
        question.answer();
        assert_eq!(question.tick(), None);
    }
}
