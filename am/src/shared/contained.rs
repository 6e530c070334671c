//! Catching the panics of handlers.

use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs a function of the program, and returns its result, or `None` if it panicked. The payload of
/// the panic is dropped here, which may panic once more.
pub(crate) fn contained<R>(run: impl FnOnce() -> R) -> Option<R> {
    // A handler that is called again sees the state in which its panic has left it, and no other
    // handler does.
    match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(gave) => Some(gave),
        Err(panicked) => {
            drop_contained(panicked);
            None
        }
    }
}

#[cold]
fn drop_contained(panicked: Box<dyn Any + Send>) {
    if let Err(again) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(panicked))) {
        // A third panic is not risked: its payload is leaked.
        std::mem::forget(again);
    }
}
