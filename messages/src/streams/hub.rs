//! What all connections of an endpoint share: the signal that there is work, and counts.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Takes a lock whose holders leave a valid state also when they panic.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The signal that handlers, or messages to peers, wait for the task that runs them.
#[derive(Debug, Default)]
pub struct Work {
    any: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Work {
    /// Signals that there is work. Returns whether a task was woken.
    pub fn signal(&self) -> bool {
        if self.any.swap(true, Ordering::AcqRel) {
            return false;
        }
        let waker = locked(&self.waker);
        waker.iter().for_each(Waker::wake_by_ref);
        waker.is_some()
    }

    /// Returns whether there is a signal.
    pub fn is_there(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes the signal, if there is one. Fast path: most looks find none, without a write.
    pub fn take(&self) -> bool {
        self.any.load(Ordering::Acquire) && self.any.swap(false, Ordering::AcqRel)
    }

    /// Has the waker woken by signals from here on. The caller then looks once more.
    pub fn arm(&self, waker: &Waker) {
        let mut there = locked(&self.waker);
        match &mut *there {
            Some(there) if there.will_wake(waker) => {}
            none => *none = Some(waker.clone()),
        }
    }
}

impl Wake for Work {
    fn wake(self: Arc<Self>) {
        self.signal();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.signal();
    }
}

/// A connection that has messages for its peer, which leave when the endpoint's task runs.
pub trait Flush: Send + Sync {
    /// Sends what can be sent, and has the rest sent as credits come.
    fn flush(self: Arc<Self>);
}

/// What all connections of an endpoint share.
#[derive(Default)]
pub struct Hub {
    pub work: Arc<Work>,
    pub counters: Counters,
    touched: Mutex<Vec<Arc<dyn Flush>>>,
}

/// The counts of an endpoint.
#[derive(Debug, Default)]
pub struct Counters {
    /// Messages that have begun to come.
    pub begun: AtomicU64,
    /// Messages whose handlers have failed, or whose rest was discarded.
    pub failed: AtomicU64,
    /// Packets, and other words of peers, that break the rules.
    pub rejected: AtomicU64,
    /// The cost of the packets that wait for handlers.
    pub held: AtomicUsize,
}

impl Hub {
    /// Has a connection flushed by the endpoint's task. Returns whether the task was woken.
    pub fn touch(&self, what: Arc<dyn Flush>) -> bool {
        locked(&self.touched).push(what);
        self.work.signal()
    }

    /// Flushes all connections that were touched.
    pub fn flush(&self) {
        let touched = std::mem::take(&mut *locked(&self.touched));
        touched.into_iter().for_each(Flush::flush);
    }

    /// Counts what a peer has sent against the rules.
    pub fn reject(&self, peer: &doorbell_am::Peer, what: &str) {
        self.counters.rejected.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%peer, what, "a packet was rejected");
    }
}
