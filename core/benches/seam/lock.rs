//! The lock around a NIC: whoever waits takes it and makes progress for all.
//!
//! Nobody ever blocks on it. Who posts work leaves a mark in the same word that says whether the
//! lock is held, in the same atomic step that tries to take it; who releases the lock gives it up
//! only if no mark was left since it last looked. So work that is posted while another thread runs
//! the NIC is sent by that thread, and none is forgotten between its last look and its release.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

const HELD: u32 = 1;
const RUNG: u32 = 2;

pub struct ProgressLock<T> {
    state: AtomicU32,
    inside: UnsafeCell<T>,
}

// SAFETY: a guard exists only while HELD was set by its maker, so the inside is reached by one
// thread at a time; it moves between threads, hence Send.
unsafe impl<T: Send> Sync for ProgressLock<T> {}

pub struct Guard<'l, T> {
    lock: &'l ProgressLock<T>,
    /// It lends the inside, and so may be shared between threads only where the inside may.
    lends: PhantomData<&'l mut T>,
}

impl<T> ProgressLock<T> {
    pub fn new(inside: T) -> Self {
        Self { state: AtomicU32::new(0), inside: UnsafeCell::new(inside) }
    }

    /// For whoever has just set HELD.
    #[inline]
    fn guard(&self) -> Guard<'_, T> {
        Guard { lock: self, lends: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        let taken = self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| self.guard())
    }

    /// Says that work was posted: takes the lock if it is free, for the caller to see to the work;
    /// otherwise its holder will.
    #[inline]
    pub fn ring(&self) -> Option<Guard<'_, T>> {
        if let Some(guard) = self.enter() {
            return Some(guard);
        }
        let before = self.state.fetch_or(HELD | RUNG, Ordering::AcqRel);
        (before & HELD == 0).then(|| self.guard())
    }
}

impl<'l, T> Guard<'l, T> {
    /// Whether work was posted since this was last asked.
    #[inline]
    pub fn rung(&self) -> bool {
        let state = &self.lock.state;
        state.load(Ordering::Relaxed) & RUNG != 0
            && state.fetch_and(!RUNG, Ordering::AcqRel) & RUNG != 0
    }

    /// Gives the lock up, unless work was posted meanwhile: then it is still held.
    #[inline]
    pub fn leave(self) -> Option<Guard<'l, T>> {
        let lock = self.lock;
        std::mem::forget(self);
        let left = lock.state.compare_exchange(HELD, 0, Ordering::SeqCst, Ordering::Relaxed);
        left.is_err().then(|| lock.guard())
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard's maker set HELD, and nobody else has a guard until it is cleared.
        unsafe { &*self.lock.inside.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.inside.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // Only while unwinding: everybody else leaves. The panic ends the measurement, so nobody
        // is kept from what it left behind.
        self.lock.state.store(0, Ordering::Release);
    }
}
