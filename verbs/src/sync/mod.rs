//! The atomics, locks and wakers of this crate.
//!
//! The atomics and the mutex are the standard library's, or loom's when loom explores
//! interleavings. Loom is switched on by a flag of this crate's own, `verbs_loom`: under the flag
//! `loom`, Tokio replaces its own primitives, too.

#[cfg(verbs_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(verbs_loom))]
pub(crate) use std::{
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

pub(crate) mod lock;
pub(crate) mod single_task;
pub(crate) mod wakers;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A cell with the interface of loom's `UnsafeCell`.
#[cfg(not(verbs_loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(verbs_loom))]
impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// Returns a number that no other living thread has.
#[cfg(not(verbs_loom))]
#[inline]
pub(crate) fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Returns a number that no other of loom's threads has: all of loom's threads are one thread of
/// the system.
#[cfg(verbs_loom)]
pub(crate) fn this_thread() -> usize {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    let id = loom::thread::current().id();
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id) as usize | 1
}

#[cfg(not(verbs_loom))]
pub(crate) use lock::locked;

/// Locks one of loom's mutexes.
#[cfg(verbs_loom)]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs code of the program's, `what`, whose panic must not end the thread that runs the NIC: other
/// tasks depend on that thread. The panic has been reported by the program's panic hook.
pub(crate) fn contained(what: &str, runs: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(runs)).is_err() {
        tracing::error!("{what} of the program has panicked");
    }
}
