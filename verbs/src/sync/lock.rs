//! Locks whose holders leave valid data also when they panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose content is valid whenever it is unlocked, even after a panic. For layers of
/// this workspace, too.
#[inline]
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
