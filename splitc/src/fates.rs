//! Which processes of a world have gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Gone;

/// Which processes have gone, and why. Shared with the task that hears of it.
#[derive(Debug)]
pub(crate) struct Fates {
    gone: Box<[AtomicBool]>,
    any: AtomicBool,
    why: Mutex<Vec<Option<Arc<str>>>>,
}

impl Fates {
    pub fn new(size: usize) -> Self {
        Self {
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            any: AtomicBool::new(false),
            why: Mutex::new(vec![None; size]),
        }
    }

    /// Notes the end of a process. What was noted first stays.
    pub fn note(&self, rank: usize, why: &str) {
        let mut all = self.why.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Whether any process has gone.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The error about the end of a process.
    #[cold]
    pub fn of(&self, rank: usize) -> Gone {
        let all = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let why = all[rank].clone();
        Gone { rank, why: why.unwrap_or_else(|| "its connection is over".into()) }
    }

    /// The first process, in the order of ranks, that has gone.
    pub fn first(&self) -> Option<Gone> {
        let gone = |rank: &usize| self.gone[*rank].load(Ordering::Acquire);
        self.any().then(|| (0..self.gone.len()).find(gone)).flatten().map(|rank| self.of(rank))
    }
}
