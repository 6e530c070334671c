//! Waiting for any condition that a layer above defines.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::state::Waiting;
use crate::progress::{Look, ProgressEngine};

/// A future that waits for the result of a look. See [`Nic::wait_for`](crate::Nic::wait_for).
#[must_use = "a future does nothing unless it is awaited"]
pub struct WaitFor<'n, L> {
    look: L,
    waiting: Waiting<'n>,
}

impl<'n, L> WaitFor<'n, L> {
    #[inline]
    pub(crate) fn new(engine: &'n ProgressEngine, look: L) -> Self {
        Self { look, waiting: Waiting::new(engine) }
    }

    /// Returns the look that the future waits with.
    pub fn look(&mut self) -> &mut L {
        &mut self.look
    }
}

impl<L> Unpin for WaitFor<'_, L> {}

impl<L> fmt::Debug for WaitFor<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = &self.waiting.engine().address;
        f.debug_struct("WaitFor").field("nic", nic).finish_non_exhaustive()
    }
}

impl<L: Look> Future for WaitFor<'_, L> {
    type Output = L::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<L::Output> {
        let this = &mut *self;
        this.waiting.poll(context, &mut this.look).map(|(found, hand)| {
            hand.release_soon();
            found
        })
    }
}
