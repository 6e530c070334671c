//! The watch: a background task that runs the NIC when no task waits.
//!
//! The watch is a task of the runtime in which the NIC was opened, or the rescue thread where there
//! is none. The watch wakes with the device while that is armed, and every millisecond while it is
//! not. Then the watch checks whether any task has taken turns since. If none has, the watch takes
//! turns, arms the device, and sleeps.
//!
//! With a spinning time of zero, the watch does not wait for a millisecond, but until other tasks
//! have run. Then only the device's time matters, and on a simulated network each run is the same.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use tokio::runtime::{self, Handle};
use tokio::sync::Notify;

use super::engine::ProgressEngine;
use super::patience::{TURNS_A_POLL, count_run};
use super::rescue::{Next, Rescuable, Rescued};
use super::wait::QUANTUM;
use super::watch_state::{WatchState, WatchStep};
use super::watch_timer::Keeper;
use crate::sync::{Ordering, locked};
use crate::sys::thread::sleepable;

impl ProgressEngine {
    /// Checks whether tasks take turns, and takes turns if none does.
    pub(crate) fn watch_once(&self, watch_state: &mut WatchState) -> WatchStep {
        self.watch.count_look();
        count_run();
        self.look_after(watch_state)
    }

    fn look_after(&self, watch_state: &mut WatchState) -> WatchStep {
        let turns_taken = self.turns_taken.load(Ordering::Relaxed);
        // A leader is no proof that turns are taken: it may be a future whose task does not poll
        // it.
        let busy = turns_taken != watch_state.turns_taken;
        watch_state.turns_taken = turns_taken;
        // The flag is cleared in any case: otherwise the next wake-up by the device would be
        // ignored.
        let again = std::mem::take(&mut watch_state.again);
        let Some(mut adapter) = self.lock.enter() else {
            self.watch.tick();
            return WatchStep::Rest;
        };
        if again && adapter.is_armed() {
            // Another task has armed the device and sleeps.
            self.release(adapter);
            return WatchStep::Rest;
        }
        let was_armed = adapter.disarm();
        if busy && !was_armed {
            self.release(adapter);
            self.watch.tick();
            return WatchStep::Rest;
        }
        // The leader has not been back since the last look, and is one of many tasks when it is.
        self.lock.depose();
        let spin = self.spin(&adapter);
        let mut start = None;
        for turn in 1..=TURNS_A_POLL {
            let turned = self.step(&mut adapter);
            let settled = self.settle(&mut adapter);
            if turned.found {
                watch_state.since = None;
            }
            if turned.woke || settled.woke || adapter.is_wanted() {
                self.release(adapter);
                return WatchStep::HandOver;
            }
            if turn % spin.turns_a_look == 0 {
                let now = adapter.now();
                let rest = now.since(*watch_state.since.get_or_insert(now)) >= spin.time;
                if rest && self.arm(&mut adapter) {
                    watch_state.since = None;
                    self.release(adapter);
                    return WatchStep::Rest;
                }
                if rest || now.since(*start.get_or_insert(now)) >= QUANTUM {
                    break;
                }
            }
        }
        self.release(adapter);
        watch_state.again = true;
        WatchStep::Again
    }

    /// Makes the watch look soon, unless the device is armed: the woken tasks may have done all
    /// work already and sleep again. That saves setting the timer twice.
    fn hand_over(&self) {
        if !self.is_armed() {
            self.watch.tick();
        }
    }

    /// Returns whether the device is armed. Returns false while another thread runs the NIC.
    fn is_armed(&self) -> bool {
        self.lock.enter().is_some_and(|adapter| {
            let armed = adapter.is_armed();
            self.release(adapter);
            armed
        })
    }

    /// Starts a watch: a task of this runtime, or the rescue thread where there is none. The rescue
    /// thread looks after NICs with a task, too, except for those of simulated networks, where time
    /// passes only as the program says.
    pub fn keep_watch(self: &Arc<Self>) -> io::Result<()> {
        let Ok(runtime) = Handle::try_current() else { return self.be_watched_by_rescue() };
        if !self.capabilities.simulated
            && let Err(why) = self.enter_rescue()
        {
            tracing::warn!(%why, address = %self.address, "no thread runs the NIC while all \
                workers of its runtime are kept by code that blocks");
        }
        let fd = self.watch.readiness.try_clone()?;
        let nudge = self.watch.nudge.clone().unwrap_or_default();
        let task = runtime.spawn(watch(Arc::downgrade(self), runtime.id(), fd, nudge));
        self.watch.keep(Keeper::Task { runtime: runtime.id(), task });
        Ok(())
    }

    /// Returns whether a watch would wake a task that sleeps in this runtime. The task of another
    /// runtime does not count, since that may not run: this runtime gets a task of its own.
    pub(super) fn is_watched_here(&self) -> bool {
        self.watch.is_kept_here() || self.me.upgrade().is_some_and(|me| me.keep_watch().is_ok())
    }

    fn be_watched_by_rescue(&self) -> io::Result<()> {
        self.enter_rescue()?;
        self.watch.keep(Keeper::Rescue);
        // The rescue thread may have been told before, when there was a task.
        self.watch.tick();
        Ok(())
    }

    fn enter_rescue(&self) -> io::Result<()> {
        let nic: Weak<dyn Rescuable> = self.me.clone();
        self.watch.enter_rescue(|readiness| Rescued::enter(nic, readiness))
    }
}

impl Rescuable for ProgressEngine {
    fn runs(&self) -> u64 {
        self.turns_taken.load(Ordering::Relaxed).wrapping_add(self.watch.looks())
    }

    fn is_watched(&self) -> bool {
        self.watch.is_kept_by_tasks()
    }

    fn alarm(&self) -> &OwnedFd {
        &self.watch.readiness
    }

    fn will_report(&self) -> bool {
        self.watch.ticks() || self.is_armed()
    }

    fn rescue(&self) -> Next {
        if self.handles.load(Ordering::Acquire) == 0 {
            return Next::Rest;
        }
        match self.look_after(&mut locked(&self.rescue_state)) {
            WatchStep::Again => Next::Again,
            WatchStep::Rest => Next::Rest,
            WatchStep::HandOver => {
                // The woken tasks run on other threads, and take their time.
                self.watch.tick();
                Next::Rest
            }
        }
    }
}

/// A guard that leaves the watch to the rescue thread when the runtime of the last task has ended:
/// tasks of other runtimes may sleep.
struct Unwatched(Weak<ProgressEngine>, runtime::Id);

impl Drop for Unwatched {
    fn drop(&mut self) {
        let Some(engine) = ProgressEngine::upgrade(&self.0) else { return };
        if engine.watch.is_left_by(self.1)
            && let Err(why) = engine.be_watched_by_rescue()
        {
            // Without a watch, no task goes to sleep from here on.
            tracing::warn!(%why, "nobody watches the NIC, whose runtime has ended");
        }
        // The task may have been in the middle of a look.
        engine.watch.tick();
    }
}

async fn watch(
    engine: Weak<ProgressEngine>,
    runtime: runtime::Id,
    fd: OwnedFd,
    nudge: Arc<Notify>,
) {
    let _unwatched = Unwatched(engine.clone(), runtime);
    let Ok(fd) = sleepable(fd) else { return };
    let mut watch_state = WatchState::default();
    loop {
        tokio::select! {
            biased;
            ready = fd.readable() => match ready {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return,
            },
            () = nudge.notified() => tokio::task::yield_now().await,
        }
        loop {
            let Some(live) = ProgressEngine::upgrade(&engine) else { return };
            let next = live.watch_once(&mut watch_state);
            if next != WatchStep::Rest {
                live.watch.note_yield(live.runs());
            }
            drop(live);
            if next == WatchStep::Rest {
                break;
            }
            tokio::task::yield_now().await;
            if next == WatchStep::HandOver {
                let Some(live) = ProgressEngine::upgrade(&engine) else { return };
                live.hand_over();
                break;
            }
        }
    }
}
