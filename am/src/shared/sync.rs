//! The atomics and the mutex of signals: the standard library's, or loom's when loom explores
//! interleavings. Loom is switched on by a flag of this crate's own, `am_loom`: under the flag
//! `loom`, Tokio replaces its own primitives, too.

#[cfg(am_loom)]
pub(super) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(am_loom))]
pub(super) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(not(am_loom))]
pub(super) use doorbell_verbs::floor::locked;

/// Locks a mutex whose holder never panics.
#[cfg(am_loom)]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
