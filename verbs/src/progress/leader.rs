//! Leadership: which of the waiting tasks drives the NIC, and which ones follow.
//!
//! This is the pattern of leader and followers. The holder of the lock takes turns with the NIC.
//! The leader is the task that has yielded between two polls, and comes back soon to take turns
//! again. Followers sleep until the leader resigns, or their own look is satisfied.

use std::task::Waker;

use crate::sync::wakers::{Place, Wakers};
use crate::sync::{AtomicU32, Mutex, Ordering, contained, fence, locked};
use crate::sys::lock::{Guard, ProgressLock};

/// The precedence of a waiting task: of several, the one with the highest spins, and the others
/// sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Precedence {
    /// Waits for a rare event, such as a request for a connection, or its end.
    Watches = 1,
    /// Serves whatever comes, as a server's task does.
    Serves = 2,
    /// Waits for an answer with which a program goes on.
    #[default]
    Awaits = 3,
}

/// The bits of `leader` that are the leader's precedence, or 0 while no task leads.
const WHO: u32 = 3;

/// The right of a task to lead. It lapses when another task becomes the leader, or the task is
/// deposed: of several tasks that have led, one at most takes itself for the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leadership(u32);

impl Leadership {
    /// Returns whether the task leads with this precedence.
    #[inline]
    pub fn is_as(self, who: Precedence) -> bool {
        self.0 & WHO == who as u32
    }
}

/// A lock with a leader and followers around some content.
///
/// A task that releases the lock, or resigns as leader, wakes a follower. A task that becomes a
/// follower enters the list first, and then tries to become the leader. These steps are in one
/// total order, with a fence between the two steps of a follower, so one of the two tasks sees the
/// other: no task sleeps while there is neither a holder nor a leader.
pub(crate) struct LeaderLock<T> {
    lock: ProgressLock<T>,
    /// The precedence of the leader, or 0 while no task leads, in the lowest bits; and above them
    /// how many leaders there have been.
    leader: AtomicU32,
    /// The waker of the leader's task, which has yielded: the thread that is to poll the task next
    /// may be kept by other code.
    leads: Mutex<Option<(Leadership, Waker)>>,
    followers: Wakers,
}

impl<T> LeaderLock<T> {
    pub fn new(inside: T) -> Self {
        Self {
            lock: ProgressLock::new(inside),
            leader: AtomicU32::new(0),
            leads: Mutex::new(None),
            followers: Wakers::default(),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        self.lock.enter()
    }

    /// Takes the lock if it is free, and otherwise tells its holder that work was posted.
    #[inline]
    pub fn ring(&self) -> Option<Guard<'_, T>> {
        self.lock.ring()
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// Panics when this thread holds the lock already.
    pub fn claim(&self) -> Guard<'_, T> {
        self.lock.claim()
    }

    /// Returns whether this thread holds the lock.
    pub fn is_mine(&self) -> bool {
        self.lock.is_mine()
    }

    /// Returns whether this thread holds the lock, or was the last to hold it.
    pub fn was_mine(&self) -> bool {
        self.lock.was_mine()
    }

    /// Releases the lock, after `owed` has run, and has run again for work that was posted
    /// meanwhile.
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
        // Releasing the lock and looking at the followers are in one total order with the fence
        // behind becoming a follower, so no fence is needed here. Loom's model of that order is
        // weaker.
        if cfg!(verbs_loom) {
            fence(Ordering::SeqCst);
        }
        if self.followers.any() && self.leader.load(Ordering::SeqCst) & WHO == 0 {
            self.followers.wake_one();
        }
    }

    /// Returns whether a task leads to which a task of this precedence gives way.
    #[inline]
    pub fn is_led(&self, from: Precedence) -> bool {
        self.leader.load(Ordering::SeqCst) & WHO >= from as u32
    }

    /// Returns whether a task of a higher precedence leads.
    #[inline]
    pub fn is_led_above(&self, who: Precedence) -> bool {
        self.leader.load(Ordering::SeqCst) & WHO > who as u32
    }

    /// Returns whether the task that has become the leader leads still.
    #[inline]
    pub fn is_leader(&self, leadership: Leadership) -> bool {
        self.leader.load(Ordering::SeqCst) == leadership.0
    }

    /// Becomes the leader, unless one of the same or of a higher precedence leads.
    #[inline]
    pub fn lead(&self, who: Precedence) -> Option<Leadership> {
        let next = |leader: u32| (leader | WHO).wrapping_add(1) | who as u32;
        let take = |leader: u32| (leader & WHO < who as u32).then(|| next(leader));
        let before = self.leader.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
        Some(Leadership(next(before)))
    }

    /// Keeps the waker of the leader's task, for whoever deposes the leader.
    #[inline]
    pub fn keep_waker(&self, leadership: Leadership, waker: &Waker) {
        let waker = waker.clone();
        let mut leads = locked(&self.leads);
        // A leader that was deposed meanwhile has no waker to be found by the next one.
        let old = if self.is_leader(leadership) {
            leads.replace((leadership, waker))
        } else {
            Some((leadership, waker))
        };
        drop(leads);
        drop(old);
    }

    /// Lets go of the waker of a leader's task, which doesn't lead any more.
    pub fn forget_waker(&self, leadership: Leadership) {
        drop(self.take_waker(leadership));
    }

    /// Takes the waker of a leader's task, if it is kept still.
    fn take_waker(&self, leadership: Leadership) -> Option<Waker> {
        locked(&self.leads).take_if(|(leads, _)| *leads == leadership).map(|(_, waker)| waker)
    }

    /// Resigns as leader, and wakes a follower. Has no effect if another task leads by now.
    #[cold]
    pub fn resign(&self, leadership: Leadership) {
        if self.step_down(leadership) {
            fence(Ordering::SeqCst);
            self.followers.wake_one();
        }
    }

    /// Resigns as leader where no other task needs to lead. Returns false if another task leads by
    /// now.
    pub fn step_down(&self, leadership: Leadership) -> bool {
        let (leader, relaxed, ordering) = (leadership.0, Ordering::Relaxed, Ordering::SeqCst);
        let led = self.leader.compare_exchange(leader, leader & !WHO, ordering, relaxed).is_ok();
        self.forget_waker(leadership);
        led
    }

    /// Removes the leader, whoever it is, without becoming the leader, and wakes the leader's task.
    ///
    /// The task has yielded to the worker thread that polled it last, and no other worker can take
    /// it from there. If that worker is kept by a handler that blocks, the task runs on another
    /// worker once it is woken.
    pub fn depose(&self) {
        let leader = self.leader.fetch_and(!WHO, Ordering::SeqCst);
        if leader & WHO != 0
            && let Some(waker) = self.take_waker(Leadership(leader))
        {
            contained("a waker", || waker.wake());
        }
    }

    /// Makes the caller's task a follower of the leader. The caller must then look once more for
    /// what it waits for, and try [`enter_unled`](Self::enter_unled).
    #[cold]
    pub fn follow(&self, place: &mut Place, waker: &Waker) {
        self.followers.enter(place, waker);
    }

    /// Takes the lock if it is free, and no task leads to which the caller gives way.
    #[cold]
    pub fn enter_unled(&self, from: Precedence) -> Option<Guard<'_, T>> {
        if self.is_led(from) { None } else { self.enter() }
    }

    /// Takes the caller's task off the followers. A follower that was woken to lead, and goes
    /// without leading because its wait has ended, wakes another.
    #[inline]
    pub fn unfollow(&self, place: &mut Place) {
        if place.is_taken() && self.followers.leave(place) {
            self.hand_on();
        }
    }

    /// Wakes a follower, unless a task leads.
    #[cold]
    fn hand_on(&self) {
        fence(Ordering::SeqCst);
        if self.leader.load(Ordering::SeqCst) & WHO == 0 {
            self.followers.wake_one();
        }
    }
}
