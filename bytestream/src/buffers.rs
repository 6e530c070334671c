//! Buffers of a segment each: those that wait for what comes next, which all streams share, and
//! spare ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use doorbell_verbs::{Buf, SharedReceiveQueue};

/// Locks what no holder leaves half changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most spare buffers that are kept.
const SPARES: usize = 64;

/// What marks the completions of receives.
pub(crate) const RECEIVE: u64 = 1 << 62;

/// Receives for which no credit is given: for signals, as many for each stream.
pub(crate) const FOR_SIGNALS: usize = 2;

/// The shared receives of an endpoint, and spare buffers.
///
/// There are as many receives as streams have promised to their peers, or as configured, if that is
/// less: an idle endpoint with many streams does not hold what all of them together may be sent.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    segment: usize,
    most: usize,
    /// How many receives are posted, and how many are promised.
    posted: AtomicUsize,
    promised: AtomicUsize,
    spares: Mutex<Vec<Buf>>,
}

impl Buffers {
    /// Buffers of `segment` bytes, of which `most` are posted to `queue` at the most. The queue is
    /// to have room for those.
    pub fn new(queue: SharedReceiveQueue, segment: usize, most: usize) -> Self {
        let (posted, promised) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { queue, segment, most, posted, promised, spares: Mutex::default() }
    }

    /// Promises so many receives more, and posts them.
    pub fn promise(&self, count: usize) {
        self.promised.fetch_add(count, Ordering::Relaxed);
        self.fill();
    }

    /// So many receives are promised no more.
    pub fn release(&self, count: usize) {
        self.promised.fetch_sub(count, Ordering::Relaxed);
    }

    /// A receive has completed.
    pub fn completed(&self) {
        self.posted.fetch_sub(1, Ordering::Relaxed);
    }

    /// Posts what is promised and not posted.
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

    /// Counts one more receive as posted, if there are fewer than there are to be. Whether.
    fn is_short(&self) -> bool {
        let target = self.promised.load(Ordering::Relaxed).min(self.most);
        let more = |posted: usize| (posted < target).then_some(posted + 1);
        self.posted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// An empty buffer of a segment.
    pub fn take(&self) -> Buf {
        let spare = locked(&self.spares).pop();
        spare.unwrap_or_else(|| Buf::with_capacity(self.segment))
    }

    /// Takes back a buffer that is done with, of whatever length.
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
