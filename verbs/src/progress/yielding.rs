//! Yielding to other tasks, also on threads that wait without a runtime.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

thread_local! {
    /// Whether this thread waits in `block_on`, so that no runtime polls what it runs.
    static BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread waits in `block_on`, and so keeps the watch itself while it sleeps.
pub(super) fn is_blocked() -> bool {
    BLOCKED.get()
}

/// Polls a future on a thread that waits without a runtime.
pub(crate) fn poll_blocked<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    /// Restores the flag, also if the future panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            BLOCKED.set(self.0);
        }
    }
    let _before = Before(BLOCKED.replace(true));
    future.poll(&mut Context::from_waker(waker))
}

/// Lets other tasks run, and comes back, on any worker thread of the runtime. Where that may call
/// an idle worker, which costs more than [`yield_to_others`], the task does not depend on what the
/// tasks of its own thread do.
pub(crate) fn yield_to_any<T>(context: &mut Context<'_>) -> Poll<T> {
    context.waker().wake_by_ref();
    Poll::Pending
}

/// Lets other tasks of this thread run, and comes back to this thread. Only the leader may: its
/// waker is kept, in case that another task keeps the thread. In a runtime this uses Tokio's own yield, since waking
/// ourselves would call an idle worker to steal the task. In `block_on`, Tokio would not wake us
/// before the call ends, so the waker is called at once.
pub(crate) fn yield_to_others<T>(context: &mut Context<'_>) -> Poll<T> {
    if BLOCKED.get() {
        context.waker().wake_by_ref();
    } else {
        let _ = pin!(tokio::task::yield_now()).poll(context);
    }
    Poll::Pending
}
