//! Running what may panic.

use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs what may panic, and returns what it gave, or `None` if it panicked. What it panicked with
/// is dropped here, and may panic once more at that.
pub(crate) fn contained<R>(run: impl FnOnce() -> R) -> Option<R> {
    // Handlers that are called again see whatever state a panic left them: their own, and no one
    // else's.
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
        // Whoever does that on and on is not followed.
        std::mem::forget(again);
    }
}
