//! Buffers of an endpoint, each as long as a segment: the receives that all its streams share, and
//! spare buffers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Buf, SharedReceiveQueue};

use crate::wire::SHORT_AT_ONCE;

/// The most spare buffers that an endpoint keeps.
const SPARES: usize = 64;

/// The bit of a work request's number that marks receives among all completions.
pub(crate) const RECEIVE: u64 = 1 << 62;

/// How many receives each stream needs beside those for whole segments: for short messages, for
/// word of what was read, and for the end of the stream.
pub(crate) const BESIDE: usize = SHORT_AT_ONCE + 2;

/// The shared receives of an endpoint, and its spare buffers.
///
/// As many receives are posted as the peers of all streams may need for what they may send, up to
/// the configured number. An endpoint with many idle streams therefore does not hold a whole window
/// for each.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    segment: usize,
    most: usize,
    /// How many receives are posted.
    posted: AtomicUsize,
    /// How many receives the peers of all streams may need together.
    promised: AtomicUsize,
    spares: Mutex<Vec<Buf>>,
}

impl Buffers {
    /// Makes buffers of `segment` bytes, of which at most `most` are posted to `queue` at a time.
    /// The queue must have room for `most` receives.
    pub fn new(queue: SharedReceiveQueue, segment: usize, most: usize) -> Self {
        let (posted, promised) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { queue, segment, most, posted, promised, spares: Mutex::default() }
    }

    /// Promises `count` more receives, and posts receives for them.
    pub fn promise(&self, count: usize) {
        self.promised.fetch_add(count, Ordering::Relaxed);
        self.fill();
    }

    /// Takes back the promise of `count` receives.
    pub fn release(&self, count: usize) {
        self.promised.fetch_sub(count, Ordering::Relaxed);
    }

    /// Counts a receive as completed.
    pub fn completed(&self) {
        self.posted.fetch_sub(1, Ordering::Relaxed);
    }

    /// Posts receives until as many are posted as are promised, or as the configuration allows.
    pub fn fill(&self) {
        while self.is_short() {
            let buffer = self.take();
            if self.queue.post(RECEIVE, buffer).is_err() {
                // The queue has room for as many receives as are counted, so this does not happen.
                self.completed();
                return;
            }
        }
    }

    /// Counts one more receive as posted if too few are posted. Returns whether it was counted.
    fn is_short(&self) -> bool {
        let target = self.promised.load(Ordering::Relaxed).min(self.most);
        let more = |posted: usize| (posted < target).then_some(posted + 1);
        self.posted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns an empty buffer with room for a segment: a spare buffer if there is one.
    pub fn take(&self) -> Buf {
        let spare = locked(&self.spares).pop();
        spare.unwrap_or_else(|| Buf::with_capacity(self.segment))
    }

    /// Takes back a buffer, and keeps it as a spare if it has room for a segment and there are few
    /// spares.
    pub fn give(&self, mut buffer: Buf) {
        if buffer.capacity() != self.segment {
            return;
        }
        buffer.clear();
        let mut spares = locked(&self.spares);
        if spares.len() < SPARES {
            spares.push(buffer);
        }
    }
}
