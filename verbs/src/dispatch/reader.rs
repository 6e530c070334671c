//! The waker of the task that reads a completion queue.

use std::task::Waker;

use crate::sync::{Mutex, locked};

/// The waker of the task that reads a completion queue, if the task sleeps.
#[derive(Default)]
pub(crate) struct ReaderWaker(Mutex<Option<Waker>>);

impl ReaderWaker {
    /// Wakes the reader, and returns whether there was one.
    pub fn wake(&self) -> bool {
        let waker = locked(&self.0).take();
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    pub fn set(&self, waker: &Waker) {
        locked(&self.0).get_or_insert_with(|| waker.clone()).clone_from(waker);
    }
}
