//! The window of a stream: how much its sender may send.

use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

use doorbell_verbs::floor::locked;

use super::WINDOW;

/// The number of bytes that the sender of a stream may send before the reader has taken earlier
/// ones.
#[derive(Debug)]
pub struct Window(Mutex<State>);

#[derive(Debug)]
struct State {
    left: usize,
    closed: bool,
    waker: Option<Waker>,
}

/// The error of a window that is closed: the reader wants no more, or has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl Window {
    /// Makes a window of the full size, of which nothing is taken.
    pub fn new() -> Self {
        Self(Mutex::new(State { left: WINDOW, closed: false, waker: None }))
    }

    /// Waits until the window has `part` bytes left, and takes them off. Only one task may take at a
    /// time.
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

    /// The number of bytes that are left.
    pub fn left(&self) -> usize {
        self.change(|state| state.left)
    }

    /// Takes bytes that are known to be [left](Self::left).
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

    /// Adds to the window what the reader has taken. The window never grows beyond its first size.
    pub fn grant(&self, part: usize) {
        let waker = self.change(|state| {
            state.left = state.left.saturating_add(part).min(WINDOW);
            state.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    /// Closes the window, so that nothing more is sent.
    pub fn close(&self) {
        let waker = self.change(|state| {
            state.closed = true;
            state.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut locked(&self.0))
    }
}
