//! The place of an outcome that one task waits for and another gives.

use doorbell_verbs::floor::locked;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// An outcome that comes once, and a task that waits for it.
#[derive(Debug)]
pub struct Slot<T> {
    /// Whether an outcome has come, which may have been taken since. Written under the lock, and
    /// read without it, too.
    has_come: AtomicBool,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    outcome: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        let state = State { outcome: None, waker: None };
        Self { has_come: AtomicBool::new(false), state: state.into() }
    }
}

impl<T> Slot<T> {
    /// Puts the outcome here, and wakes the task that waits for it, if one sleeps. The first
    /// outcome counts. Returns whether a task was woken.
    pub fn fill(&self, outcome: T) -> bool {
        let waker = self.put(outcome);
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    /// Puts the outcome here like [`fill`](Self::fill), and returns the waker of the task that
    /// waits for it, for whoever has a lock and may not wake a task yet.
    pub fn put(&self, outcome: T) -> Option<Waker> {
        let mut state = self.lock();
        if self.has_come.load(Ordering::Relaxed) {
            return None;
        }
        state.outcome = Some(outcome);
        self.has_come.store(true, Ordering::Release);
        state.waker.take()
    }

    /// Returns whether the outcome has come and was taken.
    pub fn is_taken(&self) -> bool {
        self.has_come.load(Ordering::Acquire) && self.lock().outcome.is_none()
    }

    /// Takes the outcome, if it has come.
    #[inline]
    pub fn take(&self) -> Option<T> {
        if !self.has_come.load(Ordering::Acquire) {
            return None;
        }
        self.lock().outcome.take()
    }

    /// Has a task woken when the outcome comes, or at once if it has come.
    pub fn wake_later(&self, waker: &Waker) {
        let mut state = self.lock();
        if self.has_come.load(Ordering::Relaxed) {
            return waker.wake_by_ref();
        }
        match &mut state.waker {
            Some(waits) => waits.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Takes the outcome, or has the task woken when it comes.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        match self.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                self.wake_later(context.waker());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        locked(&self.state)
    }
}
