//! How much more may be sent in a stream.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::WINDOW;

/// What the sender of a stream may send before its reader has taken what came before.
#[derive(Debug)]
pub struct Window(Mutex<State>);

#[derive(Debug)]
struct State {
    left: usize,
    closed: bool,
    waker: Option<Waker>,
}

/// The reader wants no more, or has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl Window {
    /// A whole window.
    pub fn new() -> Self {
        Self(Mutex::new(State { left: WINDOW, closed: false, waker: None }))
    }

    /// Takes a part of the window, when there is as much. One task takes at a time.
    ///
    /// # Errors
    /// When the window is closed.
    pub async fn take(&self, part: usize) -> Result<(), Closed> {
        poll_fn(|context| {
            self.change(|state| {
                if state.closed {
                    return Poll::Ready(Err(Closed));
                }
                if state.left >= part {
                    state.left -= part;
                    return Poll::Ready(Ok(()));
                }
                state.waker = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await
    }

    /// How much of the window is left.
    pub fn left(&self) -> usize {
        self.change(|state| state.left)
    }

    /// Takes a part of the window that is [left](Self::left).
    pub fn take_left(&self, part: usize) {
        self.change(|state| state.left = state.left.saturating_sub(part));
    }

    /// Waits until the window is closed.
    pub async fn closed(&self) {
        poll_fn(|context| {
            self.change(|state| {
                if state.closed {
                    return Poll::Ready(());
                }
                state.waker = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await;
    }

    /// Adds to the window what the reader has taken; never more than a whole window is there.
    pub fn grant(&self, part: usize) {
        let waker = self.change(|state| {
            state.left = state.left.saturating_add(part).min(WINDOW);
            state.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    /// Closes the window: nothing more is sent.
    pub fn close(&self) {
        let waker = self.change(|state| {
            state.closed = true;
            state.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
