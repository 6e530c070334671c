//! The core of the progress engine, which all handles of a NIC share.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_transports::{Address, Capabilities};

use super::leader::LeaderLock;
use super::patience::{Patience, count_run};
use super::watch_state::WatchState;
use super::watch_timer::WatchTimer;
use crate::adapter::{Adapter, Turned};
use crate::control::{ControlOp, ControlQueue};
use crate::sync::wakers::Wakers;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use crate::sys::lock::Guard;

/// How many results tasks may find without a turn before a turn is taken.
const FINDS_A_TURN: u32 = 32;
/// How many turns may find something before a sleep. If all of them do, it is no time to sleep.
const MOST_TO_DRAIN: u32 = 256;
/// How many turns pass between looks at the time.
pub(super) const TURNS_A_LOOK: u32 = 64;
/// How many turns are taken before a sleep where traffic is sparse.
const TURNS_TO_SLEEP: u32 = 4;

/// The adapter, while the current thread holds its lock.
pub(crate) type Held<'s> = Guard<'s, Box<dyn Adapter>>;

/// The configuration of the progress engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    /// How long a waiting task spins on a silent device before it sleeps.
    pub spin: Duration,
    /// Whether a dedicated thread runs the NIC.
    pub dedicated: bool,
}

/// How a waiting task spins before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    /// How long nothing must come before the task sleeps.
    pub time: Duration,
    /// How many turns pass between looks at the time.
    pub turns_a_look: u32,
}

/// The progress engine of one NIC: the adapter behind its lock, and the tasks that wait.
pub(crate) struct ProgressEngine {
    pub(super) lock: LeaderLock<Box<dyn Adapter>>,
    pub operations: Arc<ControlQueue>,
    pub(super) pacing: Pacing,
    /// Tasks that look at registered memory, and may find what they wait for whenever anything
    /// arrives.
    pub memory_waiters: Wakers,
    pub watch: WatchTimer,
    /// How often a waiting task took turns. The watch compares this with its last look.
    pub(super) turns_taken: AtomicU64,
    /// How long tasks take turns before they let others run.
    pub(super) patience: Patience,
    /// What the rescue thread remembers from its last look at the NIC.
    pub(super) rescue_state: Mutex<WatchState>,
    /// How many waits in a row were polled since other tasks were let run.
    pub(super) waits_in_a_row: AtomicU32,
    /// Whether a task that had its result has woken others, and none was let run since.
    pub(super) others_are_woken: AtomicBool,
    /// How many results were found without a turn.
    pub(super) finds: AtomicU32,
    /// The number of handles that programs have. Threads that run the NIC hold references beside
    /// these.
    pub(super) handles: AtomicUsize,
    /// Whether a program has closed the NIC. Who holds the NIC can rely on that.
    pub is_closed: AtomicBool,
    pub(super) me: Weak<Self>,
    pub capabilities: Capabilities,
    pub address: Address,
}

impl ProgressEngine {
    pub fn new(
        adapter: Box<dyn Adapter>,
        operations: Arc<ControlQueue>,
        pacing: Pacing,
        watch: WatchTimer,
    ) -> Arc<Self> {
        let (capabilities, address) = (*adapter.capabilities(), adapter.address().clone());
        let engine = Arc::new_cyclic(|me| Self {
            lock: LeaderLock::new(adapter),
            operations,
            pacing,
            memory_waiters: Wakers::default(),
            watch,
            turns_taken: AtomicU64::new(0),
            patience: Patience::default(),
            rescue_state: Mutex::default(),
            waits_in_a_row: AtomicU32::new(0),
            others_are_woken: AtomicBool::new(false),
            finds: AtomicU32::new(0),
            handles: AtomicUsize::new(1),
            is_closed: AtomicBool::new(false),
            me: me.clone(),
            capabilities,
            address,
        });
        engine.make_known();
        engine
    }

    /// Runs `does` with the adapter, for whose lock it waits if it must.
    pub fn with<R>(&self, does: impl FnOnce(&mut dyn Adapter) -> R) -> R {
        let mut adapter = self.lock.claim();
        adapter.refresh_clock();
        let result = does(&mut **adapter);
        self.release(adapter);
        result
    }

    /// Returns whether a dedicated thread runs the NIC.
    pub fn is_dedicated(&self) -> bool {
        self.pacing.dedicated
    }

    /// Takes the lock if it is free, for a task that runs the NIC inline. Returns nothing in
    /// dedicated mode.
    #[inline]
    pub fn enter(&self) -> Option<Held<'_>> {
        if self.pacing.dedicated { None } else { self.lock.enter() }
    }

    /// Rings the doorbell: this thread sends posted work if the lock is free, and the holder of the
    /// lock does otherwise.
    #[inline]
    pub fn ring(&self) {
        if let Some(mut adapter) = self.lock.ring() {
            count_run();
            adapter.refresh_clock();
            self.release(adapter);
        }
    }

    /// Queues a control operation, and rings the doorbell.
    pub fn submit(&self, operation: ControlOp) {
        self.operations.add(operation);
        self.ring();
    }

    /// Releases the lock after all owed work is done, and returns whether anything was sent.
    #[inline]
    pub fn release(&self, adapter: Held<'_>) -> bool {
        let mut sent = false;
        self.lock.leave(adapter, |adapter| sent |= self.settle_all(adapter));
        sent
    }

    /// Does all owed work, and returns whether anything was sent.
    #[inline]
    pub(super) fn settle_all(&self, adapter: &mut Box<dyn Adapter>) -> bool {
        let settled = adapter.settle();
        if settled.heard {
            self.memory_waiters.wake_all();
        }
        adapter.rearm_earlier();
        settled.found
    }

    /// Releases the lock for a task that goes on at once. Work that the last turn has caused, above
    /// all acknowledgements, is sent behind what is posted next, or by the watch, which takes a
    /// turn within a millisecond while the device is not armed. The device is not armed where a
    /// task has found its result.
    #[inline]
    pub fn release_soon(&self, adapter: Held<'_>) {
        if adapter.has_work() {
            self.release(adapter);
            return;
        }
        let mut rung = false;
        self.lock.leave(adapter, |adapter| {
            if std::mem::replace(&mut rung, true) {
                self.settle_all(adapter);
            }
        });
    }

    /// Counts a result that was found without a turn. Every so often a turn is taken, since
    /// otherwise peers would wait long for acknowledgements.
    #[inline]
    pub fn count_find(&self) {
        let finds = self.finds.load(Ordering::Relaxed).wrapping_add(1);
        self.finds.store(finds, Ordering::Relaxed);
        if finds.is_multiple_of(FINDS_A_TURN) && !self.pacing.dedicated {
            self.turn();
        }
    }

    /// Takes a turn, and wakes the tasks that look at memory if anything arrived. They are woken
    /// even if another task has found its result, since they may wait for the same.
    #[inline]
    pub fn step(&self, adapter: &mut Held<'_>) -> Turned {
        let turned = adapter.turn();
        let woke = turned.found && self.memory_waiters.wake_all();
        Turned { woke: turned.woke || woke, ..turned }
    }

    /// Sends what was posted, and the acknowledgements that turns have called for.
    #[inline]
    pub fn settle(&self, adapter: &mut Held<'_>) -> Turned {
        adapter.rung();
        let settled = adapter.settle();
        let woke = settled.heard && self.memory_waiters.wake_all();
        Turned { woke: settled.woke || woke, ..settled }
    }

    /// Arms the device, and looks once more. Returns whether a task that sleeps now will be woken.
    ///
    /// The watch is quieted first. If it wakes from here on and finds the NIC locked, it ticks
    /// again, and nothing undoes that.
    pub fn arm(&self, adapter: &mut Held<'_>) -> bool {
        self.watch.quiet();
        adapter.about_to_sleep(self.pacing.spin);
        self.settle(adapter);
        if adapter.arm().is_err() {
            self.watch.tick();
            return false;
        }
        if self.drain(adapter) {
            return true;
        }
        adapter.disarm();
        self.watch.tick();
        false
    }

    /// Takes turns until nothing arrives and nothing is sent. A burst begins with one frame, and
    /// frames behind it would wake nobody any more. Returns false if there is no end of it.
    fn drain(&self, adapter: &mut Held<'_>) -> bool {
        for _ in 0..MOST_TO_DRAIN {
            let turned = self.step(adapter);
            let settled = self.settle(adapter);
            if !turned.found && !settled.found {
                return true;
            }
        }
        false
    }

    /// Takes a turn, with all work that follows from it, and returns whether anything arrived or
    /// was sent.
    pub fn turn(&self) -> bool {
        let Some(mut adapter) = self.lock.enter() else { return false };
        let turned = self.step(&mut adapter);
        // A dedicated thread may sleep on the device, and no watch would look in its place.
        if turned.found && !self.pacing.dedicated {
            self.keep_awake(&mut adapter);
        }
        adapter.rung();
        self.release(adapter) | turned.found
    }

    /// Disarms the device for a task that takes turns, and makes the watch check that it goes on.
    #[inline]
    pub(super) fn keep_awake(&self, adapter: &mut Held<'_>) {
        let was_armed = adapter.disarm();
        self.tick_if(was_armed);
    }

    /// Makes the watch look soon if the device was armed until now.
    #[inline]
    pub(super) fn tick_if(&self, was_armed: bool) {
        if was_armed {
            self.watch.tick();
        }
    }

    /// Returns how a waiting task spins now before it sleeps.
    #[inline]
    pub(super) fn spin(&self, adapter: &Held<'_>) -> Spin {
        if self.pacing.spin.is_zero() || adapter.is_sparse() {
            Spin { time: Duration::ZERO, turns_a_look: TURNS_TO_SLEEP }
        } else {
            Spin { time: self.pacing.spin, turns_a_look: TURNS_A_LOOK }
        }
    }
}
