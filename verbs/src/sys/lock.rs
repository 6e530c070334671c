//! The lock around a NIC: whoever waits takes it and makes progress for all.
//!
//! Nobody blocks on it to post. Who posts leaves a mark in the same word that says whether the lock
//! is held, in the same atomic step that tries to take it; who releases the lock gives it up only
//! if no mark was left since it last looked. So work that is posted while another thread runs the
//! NIC is sent by that thread, and none is forgotten between its last look and its release.
//!
//! What needs an answer, such as making a queue pair, [waits](ProgressLock::claim) for the lock,
//! and whoever holds it for long makes room when [asked](Guard::is_wanted).

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU32, AtomicUsize, Ordering, UnsafeCell, this_thread, yield_now};

const HELD: u32 = 1;
const RUNG: u32 = 2;

/// Turns of a waiting thread before it lets others run: whoever has the lock may want this
/// processor.
const SPINS: u32 = if cfg!(verbs_loom) { 1 } else { 100 };

pub(crate) struct ProgressLock<T> {
    state: AtomicU32,
    /// How many threads wait for it.
    wanted: AtomicU32,
    /// The thread that holds it, to tell one that waits for itself.
    owner: AtomicUsize,
    inside: UnsafeCell<T>,
}

// SAFETY: a guard exists only while HELD was set by its maker, so the inside is reached by one
// thread at a time; it moves between threads, hence Send.
unsafe impl<T: Send> Sync for ProgressLock<T> {}

pub(crate) struct Guard<'l, T> {
    lock: &'l ProgressLock<T>,
    /// It lends the inside, and stays on the thread that took it.
    stays_here: PhantomData<(*const (), &'l mut T)>,
}

impl<T> ProgressLock<T> {
    pub fn new(inside: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            inside: UnsafeCell::new(inside),
        }
    }

    /// For whoever has just set HELD.
    #[inline]
    fn guard(&self) -> Guard<'_, T> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        Guard { lock: self, stays_here: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        let taken = self.state.compare_exchange(0, HELD, Ordering::SeqCst, Ordering::Relaxed);
        taken.is_ok().then(|| self.guard())
    }

    /// Says that work was posted: takes the lock if it is free, for the caller to see to the work;
    /// otherwise its holder will.
    #[inline]
    pub fn ring(&self) -> Option<Guard<'_, T>> {
        if let Some(guard) = self.enter() {
            return Some(guard);
        }
        let before = self.state.fetch_or(HELD | RUNG, Ordering::SeqCst);
        (before & HELD == 0).then(|| self.guard())
    }

    /// Whether this thread holds it.
    pub fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Waits for the lock, which nobody holds for longer than a turn once it is wanted.
    ///
    /// # Panics
    /// When this thread holds it: that would wait for ever.
    pub fn claim(&self) -> Guard<'_, T> {
        if let Some(guard) = self.enter() {
            return guard;
        }
        assert!(!self.is_mine(), "this thread has the NIC in hand: let it go first");
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let mut spins = 0;
        let guard = loop {
            if let Some(guard) = self.enter() {
                break guard;
            }
            spins += 1;
            if spins % SPINS == 0 { yield_now() } else { spin_loop() }
        };
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        guard
    }
}

impl<'l, T> Guard<'l, T> {
    /// Whether work was posted since this was last asked.
    #[inline]
    pub fn rung(&self) -> bool {
        let state = &self.lock.state;
        state.load(Ordering::Relaxed) & RUNG != 0
            && state.fetch_and(!RUNG, Ordering::SeqCst) & RUNG != 0
    }

    /// Whether work was posted, as far as this thread sees yet.
    #[inline]
    pub fn is_rung(&self) -> bool {
        self.lock.state.load(Ordering::Relaxed) & RUNG != 0
    }

    /// Whether somebody waits for the lock.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.lock.wanted.load(Ordering::Relaxed) != 0
    }

    /// Gives the lock up, unless work was posted meanwhile: then it is still held.
    #[inline]
    pub fn leave(self) -> Result<(), Guard<'l, T>> {
        let lock = self.lock;
        std::mem::forget(self);
        // Before it is free, or another's mark would be wiped off.
        lock.owner.store(0, Ordering::Relaxed);
        let left = lock.state.compare_exchange(HELD, 0, Ordering::SeqCst, Ordering::Relaxed);
        left.map(drop).map_err(|_| lock.guard())
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard's maker set HELD, and nobody else has a guard until it is cleared.
        self.lock.inside.with(|inside| unsafe { &*inside })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the guard is borrowed exclusively.
        self.lock.inside.with_mut(|inside| unsafe { &mut *inside })
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // Only while unwinding: everybody else leaves. The mark goes, too, or nobody could enter
        // any more; what it stands for is in the queues, where the next one finds it.
        self.lock.owner.store(0, Ordering::Relaxed);
        self.lock.state.store(0, Ordering::SeqCst);
    }
}
