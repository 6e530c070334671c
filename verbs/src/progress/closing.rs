//! How a NIC ends: together with the last handle that programs have.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::engine::ProgressEngine;

/// The longest that dropping the last handle waits for other threads that run the NIC. They release
/// it after at most a turn, unless the handle is dropped within a turn of theirs.
const MOMENT: Duration = Duration::from_secs(1);

impl ProgressEngine {
    /// Notes that programs have one more handle.
    pub fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Upgrades a weak reference for a turn, unless programs have dropped all handles.
    pub(super) fn upgrade(weak: &Weak<Self>) -> Option<Arc<Self>> {
        weak.upgrade().filter(|engine| engine.handles.load(Ordering::Acquire) != 0)
    }

    /// Notes that a program has dropped a handle. With the last one, the device is closed when this
    /// returns, so that its address is free.
    pub fn drop_handle(self: Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) != 1 || self.lock.is_mine() {
            return;
        }
        let start = Instant::now();
        // A thread that runs the NIC releases it for this one, and does not come back.
        self.release(self.lock.claim());
        let mut own = self;
        while let Err(still) = Arc::try_unwrap(own) {
            if start.elapsed() > MOMENT {
                return;
            }
            std::thread::yield_now();
            own = still;
        }
    }

    /// Ends all connections, tells their peers, and closes the device, whose address is free when
    /// this returns. Handles that programs still have reach nobody any more.
    ///
    /// The device is closed with the last handle instead if this thread holds the NIC, as one that
    /// runs a handler may, or if no descriptor is left.
    pub fn close(&self) {
        if self.lock.is_mine() {
            return;
        }
        let mut adapter = self.lock.claim();
        adapter.refresh_clock();
        adapter.control().end_all();
        self.settle_all(&mut adapter);
        match adapter.close() {
            Ok(closed) => *adapter = closed,
            Err(why) => tracing::debug!(%why, "the device stays open until the NIC is let go"),
        }
        self.release(adapter);
        self.memory_waiters.wake_all();
    }
}
