//! State that all connections of an endpoint share: the signal that there is work, and counts.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Wake, Waker};

use doorbell_am::Ready;
use doorbell_verbs::floor::locked;

/// The signal that handlers, or messages to peers, wait for the task that runs them.
#[derive(Debug, Default)]
pub struct Work {
    any: AtomicBool,
    /// The signal to the task of the bundle below, once there is one.
    ready: OnceLock<Ready>,
    /// The wakers of tasks that wait for messages and run handlers meanwhile.
    waiting: Mutex<Vec<Waker>>,
}

impl Work {
    /// Sets the signal to the task of the bundle below.
    pub fn begin(&self, ready: Ready) {
        let _ = self.ready.set(ready.clone());
        self.any.store(true, Ordering::Release);
        ready.signal();
    }

    /// Signals that there is work. Of several signals the first counts.
    pub fn signal(&self) {
        // Not a load alone, so that whoever takes the signal sees what there is to do.
        if self.any.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ready.get().into_iter().for_each(Ready::signal);
        let mut waiting = locked(&self.waiting);
        if !waiting.is_empty() {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Returns whether there is work.
    pub fn is_there(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes the signal, if there is one.
    pub fn take(&self) -> bool {
        self.is_there() && self.any.swap(false, Ordering::AcqRel)
    }

    /// Has the waker woken by the next signal. The caller then looks once more.
    pub fn arm(&self, waker: &Waker) {
        let mut waiting = locked(&self.waiting);
        if !waiting.iter().any(|there| there.will_wake(waker)) {
            waiting.push(waker.clone());
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

/// The signals and counts that all connections of an endpoint share.
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
    /// Packets of messages that were sent.
    pub sent: AtomicU64,
    /// The cost of the packets that wait for handlers.
    pub held: AtomicUsize,
}

impl Hub {
    /// Has a connection flushed by the endpoint's task.
    pub fn touch(&self, what: Arc<dyn Flush>) {
        locked(&self.touched).push(what);
        self.work.signal();
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
