//! What the task of a bundle runs beside the handlers of messages, for layers of this workspace.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use doorbell_verbs::floor::locked;

use crate::link::Link;
use crate::shared::Signals;

/// Work of a layer above that the task of a bundle does, outside of handlers and without the NIC.
pub trait Runner: Send + Sync {
    /// Does the work that there is. Returns whether tasks of the program may have been woken by
    /// that, so that they are to run soon.
    fn run(&self) -> bool;
}

/// The signal that a runner has work.
#[derive(Clone)]
pub struct Ready(Arc<Signals<Link>>);

impl Ready {
    pub(super) fn of(signals: &Arc<Signals<Link>>) -> Self {
        Self(signals.clone())
    }

    /// Has the bundle's task run its runners.
    #[inline]
    pub fn signal(&self) {
        self.0.signal_ready();
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ready")
    }
}

/// The runners of a bundle.
#[derive(Default)]
pub(super) struct Runners(Mutex<Vec<Weak<dyn Runner>>>);

impl Runners {
    pub fn add(&self, runner: Weak<dyn Runner>) {
        let mut runners = locked(&self.0);
        runners.retain(|runner| runner.strong_count() > 0);
        runners.push(runner);
    }

    /// Has all runners run. Returns whether tasks of the program may have been woken.
    pub fn run(&self) -> bool {
        let mut woke = false;
        for at in 0.. {
            // Without the lock, since a runner may add another.
            let Some(runner) = locked(&self.0).get(at).cloned() else { break };
            woke |= runner.upgrade().is_some_and(|runner| runner.run());
        }
        woke
    }
}
