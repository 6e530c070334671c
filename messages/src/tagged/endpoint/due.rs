//! What handlers have put on lanes, and is to be sent as soon as they have returned.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use doorbell_am::Ready;
use doorbell_verbs::floor::locked;

/// The lanes of an endpoint, of type `L`, on which handlers of Active Messages have put something.
/// Handlers may not send. Whichever task waits for something of the endpoint sends it, and the task
/// of the bundle if none does.
pub struct Due<L> {
    lanes: Mutex<Vec<Arc<L>>>,
    any: AtomicBool,
    /// Tells the bundle's task that there are lanes here.
    ready: OnceLock<Ready>,
}

impl<L> Default for Due<L> {
    fn default() -> Self {
        let (lanes, any, ready) = Default::default();
        Self { lanes, any, ready }
    }
}

impl<L> Due<L> {
    /// Has a signal given whenever there is something here.
    pub fn signal_by(&self, ready: Ready) {
        self.ready.get_or_init(|| ready);
    }

    /// Has what is on a lane sent.
    pub fn put(&self, lane: &Arc<L>) {
        let mut lanes = locked(&self.lanes);
        if lanes.iter().any(|there| Arc::ptr_eq(there, lane)) {
            return;
        }
        lanes.push(lane.clone());
        self.any.store(true, Ordering::Release);
        drop(lanes);
        self.ready.get().into_iter().for_each(Ready::signal);
    }

    /// Returns whether there may be lanes here.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes the lanes out.
    pub fn take(&self) -> Vec<Arc<L>> {
        let mut lanes = locked(&self.lanes);
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut *lanes)
    }
}

impl<L> fmt::Debug for Due<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due").field("any", &self.has_any()).finish_non_exhaustive()
    }
}
