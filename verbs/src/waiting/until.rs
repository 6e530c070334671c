//! Waiting for a change of registered memory.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::state::Waiting;
use crate::progress::{HeldNic, Look, NicGuard, ProgressEngine};
use crate::sync::wakers::Place;

/// A future that waits until a look at memory finds something. It yields the result, and the NIC if
/// its thread holds it.
#[must_use = "a future does nothing unless it is awaited"]
pub struct UntilHeld<'n, L> {
    look: MemoryLook<'n, L>,
    waiting: Waiting<'n>,
}

/// A look at registered memory, with its place among the tasks that wait for changes of memory.
struct MemoryLook<'n, L> {
    look: L,
    engine: &'n ProgressEngine,
    place: Place,
}

impl<L> Drop for MemoryLook<'_, L> {
    fn drop(&mut self) {
        self.engine.memory_waiters.leave(&mut self.place);
    }
}

impl<T, L: FnMut() -> Option<T>> Look for MemoryLook<'_, L> {
    type Output = T;

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<T> {
        (self.look)()
    }

    fn register(&mut self, waker: &Waker) {
        self.engine.memory_waiters.enter(&mut self.place, waker);
    }
}

impl<'n, T, L: FnMut() -> Option<T>> UntilHeld<'n, L> {
    #[inline]
    pub(crate) fn new(engine: &'n ProgressEngine, look: L) -> Self {
        Self {
            look: MemoryLook { look, engine, place: Place::default() },
            waiting: Waiting::new(engine),
        }
    }
}

impl<L> Unpin for UntilHeld<'_, L> {}

impl<L> fmt::Debug for UntilHeld<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntilHeld").field("nic", &self.look.engine.address).finish_non_exhaustive()
    }
}

impl<'n, T, L: FnMut() -> Option<T>> Future for UntilHeld<'n, L> {
    type Output = (T, NicGuard<'n>);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.waiting.poll(context, &mut this.look)
    }
}

/// A future that waits until a look at memory finds something, and yields that.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Until<'n, L>(pub(crate) UntilHeld<'n, L>);

impl<L> fmt::Debug for Until<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = &self.0.look.engine.address;
        f.debug_struct("Until").field("nic", nic).finish_non_exhaustive()
    }
}

impl<T, L: FnMut() -> Option<T>> Future for Until<'_, L> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(context).map(|(found, _)| found)
    }
}
