//! The timer of the watch, and the tasks and threads that keep the watch.

use std::io;
use std::iter::empty;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use doorbell_transports::Sentry;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::sync::{AtomicBool, Mutex, Ordering, locked};

/// How long a NIC goes without turns while no task waits.
const TICK: Duration = Duration::from_millis(1);

/// A time-out that is not meant to pass.
const NEVER: Duration = Duration::from_secs(3600);

/// The timer that wakes the watch, with the device's descriptors and the tasks that keep the watch.
pub(crate) struct WatchTimer {
    sentry: Mutex<Sentry>,
    /// The descriptors that the sentry watches.
    _watched: Vec<OwnedFd>,
    /// A duplicate of the sentry's descriptor, on which watches sleep.
    pub readiness: OwnedFd,
    ticks: AtomicBool,
    /// Wakes the task that keeps the watch once other tasks have run, if the watch ticks by turns
    /// of others.
    pub nudge: Option<Arc<Notify>>,
    /// The tasks, one in each runtime in which a task has slept, or the thread, that keep the
    /// watch.
    keepers: Mutex<Vec<Keeper>>,
}

/// A task or a thread that keeps the watch of a NIC.
pub(super) enum Keeper {
    Task {
        runtime: runtime::Id,
        task: JoinHandle<()>,
    },
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
    pub fn new(watched: Vec<OwnedFd>, turns: bool) -> io::Result<Self> {
        let mut sentry = Sentry::new()?;
        // The device is not armed before the first look.
        sentry.arm(watched.iter().map(AsRawFd::as_raw_fd), Some(Duration::ZERO))?;
        let readiness = sentry.readiness().try_clone_to_owned()?;
        Ok(Self {
            sentry: Mutex::new(sentry),
            _watched: watched,
            readiness,
            ticks: AtomicBool::new(true),
            nudge: turns.then(Arc::default),
            keepers: Mutex::new(Vec::new()),
        })
    }

    fn set(&self, after: Duration) {
        // The timer of a live descriptor can always be set, and what is watched stays as it was.
        let _ = locked(&self.sentry).arm(empty::<RawFd>(), Some(after));
    }

    /// Makes the watch look soon, for a device that is not armed.
    pub fn tick(&self) {
        self.ticks.store(true, Ordering::Relaxed);
        match &self.nudge {
            Some(nudge) if self.is_kept_by_task() => nudge.notify_one(),
            _ => self.set(TICK),
        }
    }

    /// Returns whether exactly one task keeps the watch. Of several, a nudge might go to one whose
    /// runtime does not run.
    fn is_kept_by_task(&self) -> bool {
        matches!(locked(&self.keepers)[..], [Keeper::Task { .. }])
    }

    /// Lets the watch sleep for as long as the device does.
    pub fn quiet(&self) {
        if self.ticks.swap(false, Ordering::Relaxed) {
            self.set(NEVER);
        }
    }

    pub(super) fn keep(&self, keeper: Keeper) {
        locked(&self.keepers).push(keeper);
    }

    pub(super) fn is_kept_here(&self) -> bool {
        let here = Handle::try_current().ok().map(|runtime| runtime.id());
        locked(&self.keepers).iter().any(|keeper| match keeper {
            Keeper::Task { runtime, .. } => Some(*runtime) == here,
            Keeper::Thread { .. } => true,
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
