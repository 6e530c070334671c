//! How a NIC ends: together with the last handle that programs have.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::engine::{Held, ProgressEngine, TURNS_A_LOOK};
use crate::dispatch::AsyncEvent;
use crate::sync::lock::locked;

/// The longest that dropping the last handle waits for other threads that run the NIC. They release
/// it after at most a turn, unless the handle is dropped within a turn of theirs.
const MOMENT: Duration = Duration::from_secs(1);

/// The longest that a device's clock stands still before it is taken for one of a simulated
/// network, whose time passes only when other code runs.
const STILL: Duration = Duration::from_millis(20);

/// The progress engines of all NICs of the process, for a thread that waits for them.
static OF_PROCESS: Mutex<Vec<Weak<ProgressEngine>>> = Mutex::new(Vec::new());

impl ProgressEngine {
    /// Makes the engine known to threads that wait for peers within the process.
    pub(super) fn make_known(&self) {
        let mut all = locked(&OF_PROCESS);
        all.retain(|engine| engine.strong_count() > 0);
        all.push(self.me.clone());
    }

    /// Runs the other NICs of the process that this thread ran last for a turn: as long as it waits,
    /// nobody else may. Those of other threads are left alone: simulated networks among them promise
    /// that one thread drives them.
    fn turn_others(&self) {
        let all = locked(&OF_PROCESS);
        let others = all.iter().filter(|engine| !Weak::ptr_eq(engine, &self.me));
        let others = others.filter_map(Self::upgrade).filter(|engine| engine.lock.was_mine());
        let others: Vec<_> = others.collect();
        drop(all);
        for engine in others {
            engine.turn();
        }
    }

    /// Carries out the requests of send queues that linger, for as long as they do. Peers may be
    /// served by this thread, too, so their NICs are run meanwhile.
    fn wait_for_lingering(&self, adapter: &mut Held<'_>) {
        self.settle(adapter);
        let (start, clock) = (Instant::now(), adapter.now());
        let mut turns = 0;
        while adapter.control().lingering.is_under_way() {
            turns += 1;
            if !self.step(adapter).found {
                self.turn_others();
                std::thread::yield_now();
            }
            self.settle(adapter);
            // The clock is read now and then, and this thread may have waited for a processor.
            if turns > 4 * TURNS_A_LOOK && start.elapsed() > STILL && adapter.now() == clock {
                return;
            }
        }
    }

    /// Notes that programs have one more handle.
    pub fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Upgrades a weak reference for a turn, unless programs have dropped all handles.
    pub(super) fn upgrade(weak: &Weak<Self>) -> Option<Arc<Self>> {
        weak.upgrade().filter(|engine| engine.handles.load(Ordering::Acquire) != 0)
    }

    /// Notes that a program has dropped a handle. With the last one, the device is closed when this
    /// returns, so that its address is free. Send queues that linger are waited for.
    pub fn drop_handle(self: Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) != 1 || self.lock.is_mine() {
            return;
        }
        // A thread that runs the NIC releases it for this one, and does not come back.
        let mut adapter = self.lock.claim();
        adapter.refresh_clock();
        self.wait_for_lingering(&mut adapter);
        tracing::debug!(address = %self.address, "closes");
        self.release(adapter);
        let start = Instant::now();
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
    /// this returns. Send queues that linger are waited for. Handles that programs still have reach
    /// nobody any more.
    ///
    /// The device is closed with the last handle instead if this thread holds the NIC, as one that
    /// runs a handler may, or if no descriptor is left.
    pub fn close(&self) {
        if self.lock.is_mine() {
            return;
        }
        let mut adapter = self.lock.claim();
        adapter.refresh_clock();
        self.wait_for_lingering(&mut adapter);
        tracing::debug!(address = %self.address, "closes");
        self.is_closed.store(true, Ordering::Release);
        adapter.control().end_all();
        self.settle_all(&mut adapter);
        match adapter.close() {
            Ok(closed) => *adapter = closed,
            Err(why) => tracing::debug!(%why, "the device stays open until the NIC is let go"),
        }
        adapter.control().tell(AsyncEvent::NicClosed);
        self.release(adapter);
        self.memory_waiters.wake_all();
    }
}
