//! Locks whose holders never panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose holder never panics, so that poison means nothing.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
