//! The lock around a NIC, which doubles as its doorbell.
//!
//! Posting never blocks on the lock. A thread that posts work sets a mark, RUNG, in the word that
//! says whether the lock is held, in the same atomic step that tries to take the lock. A thread
//! that releases the lock gives it up only if RUNG was not set since its last look. So work that is
//! posted while another thread runs the NIC is sent by that thread, and no work is forgotten
//! between the last look and the release.
//!
//! Operations that need an answer, such as making a queue pair, [wait](ProgressLock::claim) for the
//! lock. A thread that holds it for long releases it when the lock [is wanted](Guard::is_wanted).

use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU32, AtomicUsize, Ordering, UnsafeCell, this_thread, yield_now};

/// The bit of the lock's state that is set while a thread holds the lock.
const HELD: u32 = 1;
/// The bit of the lock's state that is set when work was posted that the holder must still do.
const RUNG: u32 = 2;

/// How often a waiting thread spins before it yields its processor, which the holder of the lock
/// may need.
const SPINS: u32 = if cfg!(verbs_loom) { 1 } else { 100 };

/// A lock around the NIC, whose holder hears of work that other threads post meanwhile.
pub(crate) struct ProgressLock<T> {
    state: AtomicU32,
    /// How many threads wait for the lock.
    wanted: AtomicU32,
    /// The thread that holds the lock, by which a thread notices that it would wait for itself.
    owner: AtomicUsize,
    /// The thread that held the lock last.
    last: AtomicUsize,
    inside: UnsafeCell<T>,
}

// SAFETY: a guard exists only after its maker has set HELD, so one thread at a time reaches the
// content. The content moves between threads, hence `Send`.
unsafe impl<T: Send> Sync for ProgressLock<T> {}

/// The holder's access to the content of a [`ProgressLock`].
pub(crate) struct Guard<'l, T> {
    lock: &'l ProgressLock<T>,
    /// Makes the guard borrow the content, and keeps the guard on the thread that took the lock.
    stays_here: PhantomData<(*const (), &'l mut T)>,
}

impl<T> ProgressLock<T> {
    pub fn new(inside: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
            inside: UnsafeCell::new(inside),
        }
    }

    /// Makes the guard for a caller that has just set HELD.
    #[inline]
    fn guard(&self) -> Guard<'_, T> {
        let here = this_thread();
        self.owner.store(here, Ordering::Relaxed);
        self.last.store(here, Ordering::Relaxed);
        Guard { lock: self, stays_here: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        let taken = self.state.compare_exchange(0, HELD, Ordering::SeqCst, Ordering::Relaxed);
        taken.is_ok().then(|| self.guard())
    }

    /// Announces that work was posted. Takes the lock if it is free, and the caller sends the work;
    /// otherwise the holder of the lock will send it.
    #[inline]
    pub fn ring(&self) -> Option<Guard<'_, T>> {
        if let Some(guard) = self.enter() {
            return Some(guard);
        }
        let before = self.state.fetch_or(HELD | RUNG, Ordering::SeqCst);
        (before & HELD == 0).then(|| self.guard())
    }

    /// Returns whether this thread holds the lock.
    pub fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Returns whether this thread holds the lock, or was the last to hold it.
    pub fn was_mine(&self) -> bool {
        self.last.load(Ordering::Relaxed) == this_thread()
    }

    /// Waits for the lock. A thread that holds it releases it within a turn of the NIC once the
    /// lock is wanted.
    ///
    /// # Panics
    /// Panics when this thread holds the lock already, since it would wait for ever.
    pub fn claim(&self) -> Guard<'_, T> {
        if let Some(guard) = self.enter() {
            return guard;
        }
        assert!(!self.is_mine(), "this thread holds the NIC already: release it first");
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
    /// Returns whether work was posted since the last call, and clears the mark.
    #[inline]
    pub fn rung(&self) -> bool {
        let state = &self.lock.state;
        state.load(Ordering::Relaxed) & RUNG != 0
            && state.fetch_and(!RUNG, Ordering::SeqCst) & RUNG != 0
    }

    /// Returns whether work was posted, as far as this thread sees yet, and leaves the mark.
    #[inline]
    pub fn is_rung(&self) -> bool {
        self.lock.state.load(Ordering::Relaxed) & RUNG != 0
    }

    /// Returns whether any thread waits for the lock.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.lock.wanted.load(Ordering::Relaxed) != 0
    }

    /// Releases the lock, unless work was posted meanwhile: then the guard comes back.
    #[inline]
    pub fn leave(self) -> Result<(), Guard<'l, T>> {
        let lock = self.lock;
        std::mem::forget(self);
        // The owner is cleared while the lock is held, or this store would erase the next owner's
        // mark.
        lock.owner.store(0, Ordering::Relaxed);
        let left = lock.state.compare_exchange(HELD, 0, Ordering::SeqCst, Ordering::Relaxed);
        left.map(drop).map_err(|_| lock.guard())
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the maker of this guard has set HELD, and no other guard is made until HELD is
        // cleared.
        self.lock.inside.with(|inside| unsafe { &*inside })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; and the guard is borrowed exclusively.
        self.lock.inside.with_mut(|inside| unsafe { &mut *inside })
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // A guard is dropped only while its thread unwinds: all others call `leave`. RUNG is
        // cleared, too, since nobody could enter any more otherwise. The work that RUNG announced
        // is still in the queues, where the next holder finds it.
        self.lock.owner.store(0, Ordering::Relaxed);
        self.lock.state.store(0, Ordering::SeqCst);
    }
}
