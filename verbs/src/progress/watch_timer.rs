//! The timer of the watch, and the tasks and threads that keep the watch.

use std::io;
use std::iter::empty;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use doorbell_transports::EpollTimer;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::rescue::Rescued;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, locked};

/// How long a NIC goes without turns while no task waits.
const TICK: Duration = Duration::from_millis(1);

/// A time-out that is not meant to pass.
const NEVER: Duration = Duration::from_secs(3600);

/// The timer that wakes the watch, with the device's descriptors and the tasks that keep the watch.
pub(crate) struct WatchTimer {
    epoll: Mutex<EpollTimer>,
    /// The descriptors that the epoll instance watches.
    _watched: Vec<OwnedFd>,
    /// A duplicate of the epoll instance's descriptor, on which watches sleep.
    pub readiness: OwnedFd,
    ticks: AtomicBool,
    /// How often a task has looked after the NIC as its watch.
    looks: AtomicU64,
    /// The place of the NIC in the list of the rescue thread.
    rescued: Mutex<Option<Rescued>>,
    /// Whether the device is part of a simulated network.
    simulated: bool,
    /// Wakes the task that keeps the watch once other tasks have run, if the watch ticks by turns
    /// of others.
    pub nudge: Option<Arc<Notify>>,
    /// The tasks, one in each runtime in which a task has slept, and the threads that keep the
    /// watch.
    keepers: Mutex<Vec<Keeper>>,
}

/// A task or a thread that keeps the watch of a NIC.
pub(super) enum Keeper {
    Task {
        runtime: runtime::Id,
        task: JoinHandle<()>,
    },
    /// The rescue thread of the process.
    Rescue,
    /// A thread, which ends when this end of the pair is dropped.
    Thread {
        _ends: UnixStream,
    },
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Self::Task { task, .. } = self {
            task.abort();
        }
    }
}

impl WatchTimer {
    /// Makes a timer that ticks when other tasks have run, if `turns`, or else by time.
    pub fn new(watched: Vec<OwnedFd>, turns: bool, simulated: bool) -> io::Result<Self> {
        let mut epoll = EpollTimer::new()?;
        // The device is not armed before the first look.
        epoll.arm(&watched, Some(Duration::ZERO))?;
        let readiness = epoll.readiness().try_clone_to_owned()?;
        Ok(Self {
            epoll: Mutex::new(epoll),
            _watched: watched,
            readiness,
            ticks: AtomicBool::new(true),
            looks: AtomicU64::new(0),
            rescued: Mutex::new(None),
            simulated,
            nudge: turns.then(Arc::default),
            keepers: Mutex::new(Vec::new()),
        })
    }

    /// Sets the timer, if `wanted` says so of whether it ticked until now. The timer and the flag
    /// change together.
    fn set(&self, ticks: bool, wanted: impl FnOnce(bool) -> bool) {
        let mut epoll = locked(&self.epoll);
        if wanted(self.ticks.swap(ticks, Ordering::Relaxed)) {
            let after = if ticks { TICK } else { NEVER };
            // The timer of a live descriptor can always be set, and what is watched stays as it was.
            let _ = epoll.arm(empty::<BorrowedFd<'_>>(), Some(after));
        }
    }

    /// Makes the watch look soon, for a device that is not armed.
    pub fn tick(&self) {
        match &self.nudge {
            Some(nudge) if self.is_kept_by_task() => {
                // The task may not get to run, and the rescue thread hears of the timer alone.
                self.set(true, |ticked| !ticked && !self.simulated);
                nudge.notify_one();
            }
            _ => self.set(true, |_| true),
        }
    }

    /// Returns whether the timer is set, so that the watch looks soon.
    pub fn ticks(&self) -> bool {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Counts a look after the NIC by a task that is its watch.
    pub fn count_look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often tasks have looked after the NIC as its watch.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Enters the NIC in the list of the rescue thread, unless it is there already.
    pub(super) fn enter_rescue(
        &self,
        enters: impl FnOnce(&OwnedFd) -> io::Result<Rescued>,
    ) -> io::Result<()> {
        let mut rescued = locked(&self.rescued);
        if rescued.is_none() {
            *rescued = Some(enters(&self.readiness)?);
        }
        Ok(())
    }

    /// Tells the rescue thread that the task which watches the NIC yields to others, while the
    /// device is not armed and the timer may not tick. `runs` is how often the NIC was run by
    /// others than the rescue thread.
    pub fn note_yield(&self, runs: u64) {
        if let Some(rescued) = &*locked(&self.rescued) {
            rescued.note(runs);
        }
    }

    /// Returns whether tasks alone keep the watch.
    pub fn is_kept_by_tasks(&self) -> bool {
        let keepers = locked(&self.keepers);
        !keepers.is_empty() && keepers.iter().all(|keeper| matches!(keeper, Keeper::Task { .. }))
    }

    /// Returns whether exactly one task keeps the watch. Of several, a nudge might go to one whose
    /// runtime does not run.
    fn is_kept_by_task(&self) -> bool {
        matches!(locked(&self.keepers)[..], [Keeper::Task { .. }])
    }

    /// Lets the watch sleep for as long as the device does.
    pub fn quiet(&self) {
        if self.ticks() {
            self.set(false, |ticked| ticked);
        }
    }

    pub(super) fn keep(&self, keeper: Keeper) {
        locked(&self.keepers).push(keeper);
    }

    pub(super) fn is_kept_here(&self) -> bool {
        let here = Handle::try_current().ok().map(|runtime| runtime.id());
        locked(&self.keepers).iter().any(|keeper| match keeper {
            Keeper::Task { runtime, .. } => Some(*runtime) == here,
            Keeper::Rescue | Keeper::Thread { .. } => true,
        })
    }

    /// Removes the task of a runtime that has ended. Returns whether no task or thread is left.
    pub(super) fn is_left_by(&self, runtime: runtime::Id) -> bool {
        let mut keepers = locked(&self.keepers);
        keepers
            .retain(|keeper| !matches!(keeper, Keeper::Task { runtime: of, .. } if *of == runtime));
        keepers.is_empty()
    }
}

impl Drop for WatchTimer {
    fn drop(&mut self) {
        if let Some(rescued) = locked(&self.rescued).take() {
            rescued.leave(&self.readiness);
        }
    }
}
