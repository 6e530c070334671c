//! Segment-sized buffers of an endpoint: the receives that all its streams share, and spare
//! buffers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use doorbell_verbs::{Buf, SharedReceiveQueue};

/// Locks a mutex. A holder that panicked is ignored: no holder leaves its data half changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most spare buffers that an endpoint keeps.
const SPARES: usize = 64;

/// The bit of a completion's number that marks receives.
pub(crate) const RECEIVE: u64 = 1 << 62;

/// Receives per stream for messages that need no credit: credits, and the end of the stream.
pub(crate) const FOR_SIGNALS: usize = 2;

/// The shared receives of an endpoint, and its spare buffers.
///
/// As many receives are posted as the streams have promised to their peers, up to the configured
/// number. An endpoint with many idle streams therefore does not hold a whole window for each.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    segment: usize,
    most: usize,
    /// How many receives are posted.
    posted: AtomicUsize,
    /// How many messages all peers together may send.
    promised: AtomicUsize,
    spares: Mutex<Vec<Buf>>,
}

impl Buffers {
    /// Makes buffers of `segment` bytes, of which at most `most` are posted to `queue` at a time.
    /// The queue must have room for so many.
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

    /// Posts receives until as many are posted as are promised, or as configured.
    pub fn fill(&self) {
        while self.is_short() {
            let buffer = self.take();
            if self.queue.post(RECEIVE, buffer).is_err() {
                // The queue has room for as many as are posted, and so this does not happen.
                self.completed();
                return;
            }
        }
    }

    /// Counts one more receive as posted if too few are. Returns whether it did.
    fn is_short(&self) -> bool {
        let target = self.promised.load(Ordering::Relaxed).min(self.most);
        let more = |posted: usize| (posted < target).then_some(posted + 1);
        self.posted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns an empty buffer of a segment's length: a spare one, or a new one.
    pub fn take(&self) -> Buf {
        let spare = locked(&self.spares).pop();
        spare.unwrap_or_else(|| Buf::with_capacity(self.segment))
    }

    /// Takes back a buffer. It becomes a spare one if it has a segment's length and there is room.
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
