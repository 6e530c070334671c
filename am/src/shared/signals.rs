//! Signals from links and handlers to the progress engine of their bundle.

use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::CompletionQueue;
use doorbell_verbs::floor::CompletionGauge;

use super::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, locked};
use crate::shared::{contained, handles};

/// Signals to the progress engine of a bundle, from links of type `L` and from handlers.
pub(crate) struct Signals<L> {
    /// The fill levels of the engine's completion queues: of receives, and of sends.
    pub gauges: [Gauge; 2],
    /// Whether the engine has something to do besides taking completions.
    stirred: AtomicBool,
    /// Whether other bundles are served whenever this one is.
    united: AtomicBool,
    /// Whether a layer above has work for the task that serves the bundle.
    ready: AtomicBool,
    /// Whether a handler has woken tasks since the engine last looked.
    woken_by_handlers: AtomicBool,
    /// The number of looks at the bundle that found something to do.
    looks: AtomicU64,
    /// Links that hold messages which are to leave soon.
    holding: Mutex<Vec<Arc<L>>>,
    any_holding: AtomicBool,
    /// The waker of the task that serves the bundle when nobody else does.
    driver: Mutex<Option<Waker>>,
}

/// A completion queue's counts of completions that have come and of completions taken.
pub(crate) struct Gauge {
    came: CompletionGauge,
    taken: AtomicUsize,
}

impl Gauge {
    pub fn of(queue: &CompletionQueue) -> Self {
        Self { came: queue.gauge(), taken: AtomicUsize::new(queue.taken()) }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.came.came() == self.taken.load(Ordering::Relaxed)
    }

    /// Returns how many completions have ever come to the queue.
    pub fn came(&self) -> usize {
        self.came.came()
    }

    /// Notes how many completions were ever taken from the queue.
    #[inline]
    pub fn set_taken(&self, taken: usize) {
        self.taken.store(taken, Ordering::Relaxed);
    }
}

impl<L> Signals<L> {
    pub fn new(gauges: [Gauge; 2]) -> Self {
        Self {
            gauges,
            stirred: AtomicBool::new(false),
            united: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            woken_by_handlers: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            holding: Mutex::new(Vec::new()),
            any_holding: AtomicBool::new(false),
            driver: Mutex::new(None),
        }
    }

    /// Returns whether a look at the bundle, and at the bundles united with it, would find nothing.
    /// Fast path: most looks end here, without a lock.
    #[inline]
    pub fn are_quiet(&self) -> bool {
        self.are_quiet_alone() && !self.united.load(Ordering::Relaxed)
    }

    /// Returns whether a look at this bundle alone would find nothing.
    #[inline]
    pub fn are_quiet_alone(&self) -> bool {
        !self.is_stirred() && self.gauges.iter().all(Gauge::is_empty)
    }

    /// Returns whether the engine has something to do besides taking completions.
    #[inline]
    pub fn is_stirred(&self) -> bool {
        self.stirred.load(Ordering::Acquire)
    }

    /// Has the engine look at the bundle, even if no completion comes.
    pub fn stir(&self) {
        self.stirred.store(true, Ordering::Release);
        self.wake_driver();
    }

    /// Has the engine look once more. For the holder of the poller, which is looking just now.
    pub fn stir_again(&self) {
        self.stirred.store(true, Ordering::Relaxed);
    }

    /// Begins a look at the bundle. What stirred the engine before is seen by this look, and
    /// whoever stirs the engine from here on gets another one.
    pub fn begin_look(&self) {
        if self.stirred.load(Ordering::Acquire) {
            self.stirred.swap(false, Ordering::AcqRel);
        }
        // Only the holder of the poller counts.
        self.looks.store(self.looks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Returns the number of the look that goes on.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Notes that other bundles are served whenever this one is.
    pub fn set_united(&self) {
        self.united.store(true, Ordering::Relaxed);
    }

    /// Has the task that serves the bundle do the work of layers above.
    #[inline]
    pub fn signal_ready(&self) {
        self.ready.store(true, Ordering::Release);
        self.wake_driver();
    }

    /// Returns whether layers above have work.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Notes that layers above do their work now. Returns whether they had any.
    pub fn take_ready(&self) -> bool {
        self.ready.swap(false, Ordering::AcqRel)
    }

    /// Notes that a handler has woken tasks, which are to run before the engine looks again.
    pub fn note_woken(&self) {
        self.woken_by_handlers.store(true, Ordering::Relaxed);
    }

    /// Returns whether a handler has woken tasks since this was last asked.
    #[inline]
    pub fn take_woken(&self) -> bool {
        let woken = self.woken_by_handlers.load(Ordering::Relaxed);
        if woken {
            self.woken_by_handlers.store(false, Ordering::Relaxed);
        }
        woken
    }

    /// Notes that a link holds messages, which leave at the engine's next look at the latest.
    pub fn hold(&self, link: Arc<L>) {
        locked(&self.holding).push(link);
        self.any_holding.store(true, Ordering::Release);
        self.stirred.store(true, Ordering::Release);
        // A look that handles messages now sends what is held when it ends.
        if !handles() {
            self.wake_driver();
        }
    }

    /// Returns whether any link holds messages.
    #[inline]
    pub fn any_holding(&self) -> bool {
        self.any_holding.load(Ordering::Acquire)
    }

    /// Has each link that holds messages send them. Out of line, since lone messages are not held.
    #[inline(never)]
    pub fn flush_with(&self, flush: impl Fn(&L)) {
        let mut links = {
            let mut holding = locked(&self.holding);
            self.any_holding.store(false, Ordering::Relaxed);
            std::mem::take(&mut *holding)
        };
        links.drain(..).for_each(|link| flush(&link));
        // The list's memory is used again, for flushes are frequent.
        let mut holding = locked(&self.holding);
        if holding.capacity() == 0 {
            *holding = links;
        }
    }

    /// Drops the list of links that hold messages, and with it what those links keep alive.
    pub fn clear(&self) {
        let held = std::mem::take(&mut *locked(&self.holding));
        drop(held);
    }

    /// Sets the waker of the task that serves the bundle when nobody else does.
    pub fn set_driver(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = locked(&self.driver).replace(waker);
        drop(old);
    }

    /// Has the task that serves the bundle run once other tasks are let run.
    fn wake_driver(&self) {
        let driver = locked(&self.driver).take();
        // The waker is Tokio's, and not the program's, so that it may run under locks of callers.
        if let Some(driver) = driver {
            contained(|| driver.wake());
        }
    }
}
