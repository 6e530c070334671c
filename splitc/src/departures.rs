//! The processes of a world that have gone, and why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_verbs::{Cause, Ending, Silence};

use crate::error::Gone;
use doorbell_verbs::floor::locked;

/// A record of the processes that have gone, and of the reasons. Shared with the task that watches
/// for the ends of peers.
#[derive(Debug)]
pub(crate) struct Departures {
    gone: Box<[AtomicBool]>,
    any: AtomicBool,
    why: Mutex<Vec<Option<Arc<str>>>>,
}

impl Departures {
    pub fn new(size: usize) -> Self {
        Self {
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            any: AtomicBool::new(false),
            why: Mutex::new(vec![None; size]),
        }
    }

    /// Notes that a process has gone, and why. If its end was noted before, the first reason stays.
    pub fn note(&self, rank: usize, why: &str) {
        let mut all = locked(&self.why);
        all[rank].get_or_insert_with(|| why.into());
        drop(all);
        self.gone[rank].store(true, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// Whether a process has gone.
    #[inline]
    pub fn has_gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Relaxed)
    }

    /// Whether at least one process has gone.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The error that says why a process has gone.
    #[cold]
    pub fn of(&self, rank: usize) -> Gone {
        let all = locked(&self.why);
        let why = all[rank].clone();
        Gone { rank, why: why.unwrap_or_else(|| "its connection is over".into()) }
    }

    /// The error about the process of the lowest rank that has gone, if any process has.
    pub fn first(&self) -> Option<Gone> {
        let gone = |rank: &usize| self.gone[*rank].load(Ordering::Acquire);
        self.any().then(|| (0..self.gone.len()).find(gone)).flatten().map(|rank| self.of(rank))
    }
}

/// Tells how the connection to a process has ended. Where the NIC's keep-alive has ended it, that
/// is told by the name that the limit has in this crate.
pub(crate) fn told(ending: &Ending) -> String {
    match ending {
        Ending::Broken(Cause::PeerSilent { millis, limit: Silence::Idle | Silence::Busy }) => {
            format!(
                "nothing has come from it for {millis} ms (`Config::patience`): it has ended, was \
                 stopped, or is not reached any more"
            )
        }
        ending => ending.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors named `keep_alive.idle`, which programs of Split-C do not configure.
    #[test]
    fn the_end_of_a_silent_process_names_the_patience_that_programs_configure() {
        for limit in [Silence::Idle, Silence::Busy] {
            let ending = Ending::Broken(Cause::PeerSilent { millis: 9000, limit });
            let told = told(&ending);
            assert!(told.contains("9000 ms (`Config::patience`)"), "{told}");
            assert!(!told.contains("keep_alive"), "{told}");
        }
        let ending = Ending::Broken(Cause::LinkGone);
        assert_eq!(told(&ending), ending.to_string());
    }
}
