//! The place of an outcome that one task waits for and another gives.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// An outcome that comes once, and a task that waits for it.
#[derive(Debug)]
pub struct Slot<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    outcome: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(State { outcome: None, waker: None }))
    }
}

impl<T> Slot<T> {
    /// Puts the outcome here, and wakes the task that waits for it. The first outcome counts.
    pub fn fill(&self, outcome: T) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Takes the outcome, if it has come.
    pub fn take(&self) -> Option<T> {
        self.lock().outcome.take()
    }

    /// Takes the outcome, or has the task woken when it comes.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                match &mut state.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
