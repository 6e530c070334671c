//! Who has the NIC, who keeps the duty between two polls, and who stands by.

use std::task::Waker;

use crate::sync::{AtomicU32, Ordering, fence};
use crate::sys::lock::{Guard, ProgressLock};
use crate::wakers::{Place, Wakers};

/// Of several who wait, which one spins, and leaves the others to sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Precedence {
    /// Who waits for what happens now and then: that a connection is asked for, or ends.
    Watches = 1,
    /// Who serves whatever comes.
    Serves = 2,
    /// Who waits for an answer, with which a program goes on.
    #[default]
    Awaits = 3,
}

/// That nobody keeps the duty.
const NOBODY: u32 = 0;

/// What runs when somebody takes turns with it, and those who would.
///
/// Whoever gives it up, or the duty, wakes one who stands by. Whoever would stand by says so first
/// and then tries to take it. The one order of all these steps, and a fence between the two of
/// whoever stands by, see to it that one of them sees the other: so none sleeps beside what nobody
/// has.
pub(crate) struct Duty<T> {
    lock: ProgressLock<T>,
    /// Who is the keeper, by precedence; 0 if nobody is.
    kept: AtomicU32,
    standby: Wakers,
}

impl<T> Duty<T> {
    pub fn new(inside: T) -> Self {
        Self {
            lock: ProgressLock::new(inside),
            kept: AtomicU32::new(NOBODY),
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
        // The step that left and the look at who stands by are in one order with the fence that is
        // behind standing by: so there need be none here. Loom takes such an order for less.
        if cfg!(verbs_loom) {
            fence(Ordering::SeqCst);
        }
        if self.standby.any() && self.kept.load(Ordering::SeqCst) == NOBODY {
            self.standby.wake_one();
        }
    }

    /// Whether somebody keeps the duty whom who has this precedence lets be.
    #[inline]
    pub fn is_kept(&self, from: Precedence) -> bool {
        self.kept.load(Ordering::SeqCst) >= from as u32
    }

    /// Whether the duty is kept by somebody of just this precedence: who took it for himself,
    /// unless another has taken it since.
    #[inline]
    pub fn is_with(&self, who: Precedence) -> bool {
        self.kept.load(Ordering::SeqCst) == who as u32
    }

    /// Takes the duty, unless another has it of the same precedence or a higher one. Whether it is
    /// the caller's.
    #[inline]
    pub fn keep(&self, who: Precedence) -> bool {
        let take = |kept: u32| (kept < who as u32).then_some(who as u32);
        self.kept.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    /// Lays the duty down, for another who stands by. If it is another's by now, it stays there.
    #[cold]
    pub fn resign(&self, who: Precedence) {
        if self.rest(who) {
            fence(Ordering::SeqCst);
            self.standby.wake_one();
        }
    }

    /// Lays the duty down where nobody needs to have it, unless it is another's by now. Whether it
    /// was not.
    pub fn rest(&self, who: Precedence) -> bool {
        let (relaxed, ordering) = (Ordering::Relaxed, Ordering::SeqCst);
        self.kept.compare_exchange(who as u32, NOBODY, ordering, relaxed).is_ok()
    }

    /// Takes the duty from whoever keeps it, and does not come back.
    pub fn relieve(&self) {
        self.kept.store(NOBODY, Ordering::SeqCst);
    }

    /// Stands by: what the caller waits for is to be looked for once more, and then what this is
    /// about, for it may have become [vacant](Self::vacant).
    #[cold]
    pub fn stand_by(&self, place: &mut Place, waker: &Waker) {
        self.standby.enter(place, waker);
    }

    /// What this is about, if nobody has it, and nobody keeps the duty either who goes before.
    #[cold]
    pub fn vacant(&self, from: Precedence) -> Option<Guard<'_, T>> {
        if self.is_kept(from) { None } else { self.enter() }
    }

    #[inline]
    pub fn stand_down(&self, place: &mut Place) {
        if place.is_taken() {
            self.standby.leave(place);
        }
    }
}
