//! How a NIC ends: with the last handle that a program has of it, and not a moment later.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Shared;

/// The longest that whoever drops the last handle waits for those who run the NIC. They take no
/// longer than a turn, unless this is within a turn of theirs.
const MOMENT: Duration = Duration::from_secs(1);

/// How many handles programs have, beside those who run the NIC for them and have it for a turn.
pub(super) struct Handles(AtomicUsize);

impl Default for Handles {
    fn default() -> Self {
        Self(AtomicUsize::new(1))
    }
}

impl Shared {
    /// A program has one more handle.
    pub fn taken_up(&self) {
        self.handles.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The NIC for a turn, unless programs have let it go.
    pub(super) fn of(weak: &Weak<Self>) -> Option<Arc<Self>> {
        weak.upgrade().filter(|shared| shared.handles.0.load(Ordering::Acquire) != 0)
    }

    /// A program lets go of a handle. With the last one the device is closed when this returns, so
    /// that its address is free for another.
    pub fn let_go(self: Arc<Self>) {
        if self.handles.0.fetch_sub(1, Ordering::AcqRel) != 1 || self.duty.is_mine() {
            return;
        }
        let start = Instant::now();
        // Whoever is at it makes room, and does not come again.
        self.release(self.duty.claim());
        let mut own = self;
        while let Err(still) = Arc::try_unwrap(own) {
            if start.elapsed() > MOMENT {
                return;
            }
            std::thread::yield_now();
            own = still;
        }
    }
}
