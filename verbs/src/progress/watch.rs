//! The watch: who sees to the NIC when nobody waits.
//!
//! A task of the runtime in which the NIC was opened, or a thread where there is none. It wakes
//! with the device while that is armed, and every millisecond while it is not: then it looks
//! whether anybody has taken turns since, and if not, takes some, arms the device, and sleeps.
//!
//! Where nobody spins, the task does not wait for a millisecond, but until others have been run. No
//! time passes then but the device's, and so on a simulated network each run is the same.

use std::io;
use std::iter::empty;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_transports::Sentry;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{QUANTUM, Shared, TURNS_A_LOOK, TURNS_A_POLL};
use crate::sync::{AtomicBool, Mutex, Ordering, locked};
use crate::sys::thread::{pin_to, sleepable, wait_either};

/// How long nobody sees to a NIC whose program does not wait for anything.
const TICK: Duration = Duration::from_millis(1);

/// A timer that is of no concern.
const NEVER: Duration = Duration::from_secs(3600);

pub(crate) struct Watch {
    sentry: Mutex<Sentry>,
    /// What the sentry watches.
    _watched: Vec<OwnedFd>,
    /// The same as its readiness, for whoever sleeps on it.
    readiness: OwnedFd,
    ticks: AtomicBool,
    /// Tells a task to look when others have been run, if that is how it ticks.
    nudge: Option<Arc<Notify>>,
    /// Who keeps the watch: a task of each runtime in which somebody has slept, or a thread.
    keepers: Mutex<Vec<Keeper>>,
}

enum Keeper {
    Task {
        runtime: runtime::Id,
        task: JoinHandle<()>,
    },
    /// When this end is dropped, the thread ends.
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

impl Watch {
    /// One that ticks by `turns` of others, or else by time.
    pub fn new(watched: Vec<OwnedFd>, turns: bool) -> io::Result<Self> {
        let mut sentry = Sentry::new()?;
        // Every first look finds the device unarmed.
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
        // A live descriptor's timer can always be set; what is watched is so from the beginning.
        let _ = locked(&self.sentry).arm(empty::<RawFd>(), Some(after));
    }

    /// Has the watch look soon: the device is not armed.
    pub fn tick(&self) {
        self.ticks.store(true, Ordering::Relaxed);
        match &self.nudge {
            Some(nudge) if self.is_kept_by_task() => nudge.notify_one(),
            _ => self.set(TICK),
        }
    }

    /// Whether one task keeps it, and nobody else: of several, that of a runtime which does not run
    /// might be told.
    fn is_kept_by_task(&self) -> bool {
        matches!(locked(&self.keepers)[..], [Keeper::Task { .. }])
    }

    /// Has it sleep as long as the device does.
    pub fn quiet(&self) {
        if self.ticks.swap(false, Ordering::Relaxed) {
            self.set(NEVER);
        }
    }

    fn keep(&self, keeper: Keeper) {
        locked(&self.keepers).push(keeper);
    }

    /// What is readable when the watch is to look.
    pub fn readiness(&self) -> &OwnedFd {
        &self.readiness
    }

    fn is_kept_here(&self) -> bool {
        let here = Handle::try_current().ok().map(|runtime| runtime.id());
        locked(&self.keepers).iter().any(|keeper| match keeper {
            Keeper::Task { runtime, .. } => Some(*runtime) == here,
            Keeper::Thread { .. } => true,
        })
    }

    /// A runtime has ended. Whether nobody is left.
    fn is_left_by(&self, runtime: runtime::Id) -> bool {
        let mut keepers = locked(&self.keepers);
        keepers
            .retain(|keeper| !matches!(keeper, Keeper::Task { runtime: of, .. } if *of == runtime));
        keepers.is_empty()
    }
}

/// What the watch does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Lets others run, and looks again.
    Again,
    /// Lets those run who were woken, and sees that they go on with the NIC, or that it is looked
    /// at soon.
    HandOver,
    /// Sleeps until the device or the timer tells.
    Rest,
}

/// What a watch remembers from one look to the next.
#[derive(Default)]
pub(crate) struct Patrol {
    attended: u64,
    /// Since when nothing has come.
    since: Option<doorbell_core::time::Time>,
    /// Whether it has let others run, and looks again.
    again: bool,
}

impl Shared {
    /// Looks, and sees to the NIC if nobody else does.
    pub(crate) fn patrol(&self, patrol: &mut Patrol) -> Next {
        let attended = self.attended.load(Ordering::Relaxed);
        // That somebody keeps the duty is not enough: it may be a future that its task does not
        // poll.
        let busy = attended != patrol.attended;
        patrol.attended = attended;
        // Taken in any case: if it stayed, the device's next call would be passed over.
        let again = std::mem::take(&mut patrol.again);
        let Some(mut machine) = self.duty.enter() else {
            self.watch.tick();
            return Next::Rest;
        };
        if again && machine.is_armed() {
            // One of the others has slept since.
            self.release(machine);
            return Next::Rest;
        }
        let was_armed = machine.disarm();
        if busy && !was_armed {
            self.release(machine);
            self.watch.tick();
            return Next::Rest;
        }
        // Who keeps the duty has not been back since the last look, and is one of many when it is.
        self.duty.relieve();
        let spin = self.spin(&machine);
        let mut start = None;
        for turn in 1..=TURNS_A_POLL {
            let turned = self.step(&mut machine);
            let settled = self.settle(&mut machine);
            if turned.found {
                patrol.since = None;
            }
            if turned.woke || settled.woke || machine.is_wanted() {
                self.release(machine);
                return Next::HandOver;
            }
            if turn % spin.turns_a_look == 0 {
                let now = machine.now();
                let rest = now.since(*patrol.since.get_or_insert(now)) >= spin.time;
                if rest && self.arm(&mut machine) {
                    patrol.since = None;
                    self.release(machine);
                    return Next::Rest;
                }
                if rest || now.since(*start.get_or_insert(now)) >= QUANTUM {
                    break;
                }
            }
        }
        self.release(machine);
        patrol.again = true;
        Next::Again
    }

    /// Has the watch look soon, unless the device is armed: whoever was woken may have done all there
    /// was to do, and sleep again. That spares setting the timer twice.
    fn hand_over(&self) {
        let armed = self.duty.enter().is_some_and(|machine| {
            let armed = machine.is_armed();
            self.release(machine);
            armed
        });
        if !armed {
            self.watch.tick();
        }
    }

    /// Has somebody keep the watch: a task of this runtime, or else a thread.
    pub fn keep_watch(self: &Arc<Self>) -> io::Result<()> {
        let Ok(runtime) = Handle::try_current() else { return self.keep_watch_by_thread() };
        let fd = self.watch.readiness.try_clone()?;
        let nudge = self.watch.nudge.clone().unwrap_or_default();
        let task = runtime.spawn(watch(Arc::downgrade(self), runtime.id(), fd, nudge));
        self.watch.keep(Keeper::Task { runtime: runtime.id(), task });
        Ok(())
    }

    /// Whether somebody would wake who sleeps here. A task of another runtime is not enough, which
    /// may not run, and so this one gets its own.
    pub(super) fn is_watched_here(&self) -> bool {
        self.watch.is_kept_here() || self.me.upgrade().is_some_and(|me| me.keep_watch().is_ok())
    }

    fn keep_watch_by_thread(self: &Arc<Self>) -> io::Result<()> {
        let fd = self.watch.readiness.try_clone()?;
        let shared = Arc::downgrade(self);
        let (ends, ended) = UnixStream::pair()?;
        let body = move || watch_as_thread(&shared, &fd, &ended);
        std::thread::Builder::new().name("doorbell-watch".into()).spawn(body)?;
        self.watch.keep(Keeper::Thread { _ends: ends });
        Ok(())
    }

    /// Has a thread run the NIC for as long as it lives, on a processor of its own if one is named.
    /// When nothing has come for `spin`, it sleeps until something does; without a `spin` never.
    pub fn dedicate(
        self: &Arc<Self>,
        core: Option<usize>,
        spin: Option<Duration>,
    ) -> io::Result<()> {
        let fd = self.watch.readiness.try_clone()?;
        let shared = Arc::downgrade(self);
        let (ends, ended) = UnixStream::pair()?;
        let (pinned, is_pinned) = std::sync::mpsc::channel();
        let body = move || {
            let result = core.map_or(Ok(()), pin_to);
            let goes = result.is_ok();
            if pinned.send(result).is_ok() && goes {
                run(&shared, spin, &fd, &ended);
            }
        };
        std::thread::Builder::new().name("doorbell-nic".into()).spawn(body)?;
        is_pinned.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        self.watch.keep(Keeper::Thread { _ends: ends });
        Ok(())
    }
}

/// Has a thread keep the watch when its runtime has ended: tasks of others may sleep.
struct Unwatched(Weak<Shared>, runtime::Id);

impl Drop for Unwatched {
    fn drop(&mut self) {
        let Some(shared) = Shared::of(&self.0) else { return };
        if shared.watch.is_left_by(self.1)
            && let Err(why) = shared.keep_watch_by_thread()
        {
            // Nobody goes to sleep from here on.
            tracing::warn!(%why, "nobody watches the NIC, whose runtime has ended");
        }
        // It was in the middle of something, perhaps.
        shared.watch.tick();
    }
}

async fn watch(shared: Weak<Shared>, runtime: runtime::Id, fd: OwnedFd, nudge: Arc<Notify>) {
    let _unwatched = Unwatched(shared.clone(), runtime);
    let Ok(fd) = sleepable(fd) else { return };
    let mut patrol = Patrol::default();
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
            let Some(live) = Shared::of(&shared) else { return };
            let next = live.patrol(&mut patrol);
            drop(live);
            if next == Next::Rest {
                break;
            }
            tokio::task::yield_now().await;
            if next == Next::HandOver {
                let Some(live) = Shared::of(&shared) else { return };
                live.hand_over();
                break;
            }
        }
    }
}

fn watch_as_thread(shared: &Weak<Shared>, fd: &OwnedFd, ended: &UnixStream) {
    let mut patrol = Patrol::default();
    // Until the NIC is no more.
    while wait_either(fd, ended) {
        loop {
            let Some(shared) = Shared::of(shared) else { return };
            match shared.patrol(&mut patrol) {
                Next::Again => {}
                Next::HandOver => {
                    // They are of other threads, which take their time.
                    shared.watch.tick();
                    break;
                }
                Next::Rest => break,
            }
            drop(shared);
            std::thread::yield_now();
        }
    }
}

/// The thread that runs a NIC.
fn run(shared: &Weak<Shared>, spin: Option<Duration>, fd: &OwnedFd, ended: &UnixStream) {
    let mut since = None;
    loop {
        // The NIC goes when its programs have let it go, not when this thread does.
        let Some(shared) = Shared::of(shared) else { return };
        let Some(mut machine) = shared.duty.enter() else {
            std::hint::spin_loop();
            continue;
        };
        machine.disarm();
        let mut rests = false;
        for turn in 1..=TURNS_A_POLL {
            let turned = shared.step(&mut machine);
            shared.settle(&mut machine);
            if turned.found {
                since = None;
            }
            if machine.is_wanted() {
                break;
            }
            if turn % TURNS_A_LOOK == 0 {
                let now = machine.now();
                let idle = now.since(*since.get_or_insert(now));
                rests = spin.is_some_and(|spin| idle >= spin) && shared.arm(&mut machine);
                if rests {
                    break;
                }
            }
        }
        let wanted = machine.is_wanted();
        shared.release(machine);
        drop(shared);
        if rests {
            since = None;
            if !wait_either(fd, ended) {
                return;
            }
        } else if wanted {
            std::thread::yield_now();
        }
    }
}
