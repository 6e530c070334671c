//! The atomics in use: the standard library's, or loom's when loom explores the interleavings.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

/// A cell in the manner of loom's.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
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
