//! Who has the NIC, who keeps the duty between two polls, and who stands by.

use std::task::Waker;

use crate::sync::{AtomicBool, Ordering, fence};
use crate::sys::lock::{Guard, ProgressLock};
use crate::wakers::{Place, Wakers};

/// What runs when somebody takes turns with it, and those who would.
///
/// Whoever gives it up, or the duty, wakes one who stands by. Whoever would stand by says so first
/// and then tries to take it. A fence between the two steps, on both sides, sees to it that one of
/// them sees the other: so none sleeps beside what nobody has.
pub(crate) struct Duty<T> {
    lock: ProgressLock<T>,
    /// Whether somebody is the keeper.
    kept: AtomicBool,
    standby: Wakers,
}

impl<T> Duty<T> {
    pub fn new(inside: T) -> Self {
        Self {
            lock: ProgressLock::new(inside),
            kept: AtomicBool::new(false),
            standby: Wakers::default(),
        }
    }

    /// What it is about, if nobody has it.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        self.lock.enter()
    }

    /// The same when it was rung for: if somebody has it, he hears of it.
    #[inline]
    pub fn ring(&self) -> Option<Guard<'_, T>> {
        self.lock.ring()
    }

    /// The same, waiting for whoever has it.
    ///
    /// # Panics
    /// When that is this thread.
    pub fn claim(&self) -> Guard<'_, T> {
        self.lock.claim()
    }

    /// Whether this thread has it.
    pub fn is_mine(&self) -> bool {
        self.lock.is_mine()
    }

    /// Gives it up when all is done that it owes, and what was rung for meanwhile.
    #[inline]
    pub fn leave(&self, mut guard: Guard<'_, T>, mut owed: impl FnMut(&mut T)) {
        loop {
            owed(&mut guard);
            match guard.leave() {
                Ok(()) => break,
                Err(still) => {
                    still.rung();
                    guard = still;
                }
            }
        }
        fence(Ordering::SeqCst);
        if self.standby.any() && !self.kept.load(Ordering::SeqCst) {
            self.standby.wake_one();
        }
    }

    /// Whether somebody keeps the duty.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::SeqCst)
    }

    /// Takes the duty, unless another has it. Whether it is the caller's.
    #[inline]
    pub fn keep(&self) -> bool {
        !self.kept.swap(true, Ordering::SeqCst)
    }

    /// Lays the duty down, for another who stands by.
    #[cold]
    pub fn resign(&self) {
        self.rest();
        fence(Ordering::SeqCst);
        self.standby.wake_one();
    }

    /// Lays the duty down where nobody needs to have it.
    pub fn rest(&self) {
        self.kept.store(false, Ordering::SeqCst);
    }

    /// Stands by: what the caller waits for is to be looked for once more, and then what this is
    /// about, for it may have become [vacant](Self::vacant).
    #[cold]
    pub fn stand_by(&self, place: &mut Place, waker: &Waker) {
        self.standby.enter(place, waker);
    }

    /// What this is about, if nobody has it, and nobody keeps the duty either.
    #[cold]
    pub fn vacant(&self) -> Option<Guard<'_, T>> {
        if self.is_kept() { None } else { self.enter() }
    }

    #[inline]
    pub fn stand_down(&self, place: &mut Place) {
        if place.is_taken() {
            self.standby.leave(place);
        }
    }
}
