//! Counters of what the endpoints of a bundle have handled.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters behind [`Statistics`](crate::Statistics).
#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub requests: AtomicU64,
    pub replies: AtomicU64,
    pub returned: AtomicU64,
    pub undelivered: AtomicU64,
    pub malformed: AtomicU64,
    pub panics: AtomicU64,
    pub late: AtomicU64,
}

impl Counters {
    /// Returns the number of messages that were handled.
    pub fn handled(&self) -> u64 {
        let Self { requests, replies, returned, .. } = self;
        [requests, replies, returned].iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

/// Adds one to a counter that only the holder of the poller writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
