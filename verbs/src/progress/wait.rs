//! A wait: when its task takes turns, follows, yields or sleeps.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorbell_core::time::Time;

use super::engine::{Held, ProgressEngine, TURNS_A_LOOK};
use super::held::HeldNic;
use super::leader::{LeaderLock, Leadership, Precedence};
use super::look::Look;
use super::patience::Spent;
use super::yielding::{is_blocked, yield_to_any, yield_to_others};
use crate::sync::Ordering;
use crate::sync::wakers::Place;

/// The time for which a future takes turns before it lets other tasks run.
pub(super) const QUANTUM: Duration = Duration::from_micros(40);
/// How many results in a row tasks may find before other tasks are let run.
const MOST_AT_ONCE: u32 = 512;
/// Of how many results one settles what turns have called for; the others leave that to the next.
const FINDS_TO_SETTLE: u32 = 16;
/// The most turns that pass without a look at what there is to send.
const TURNS_TO_SETTLE: u32 = 16;

/// The state of one wait, from its first poll to its end.
#[derive(Default)]
pub(crate) struct WaitState {
    /// The right of the task to lead, unless another task has taken over since.
    leadership: Option<Leadership>,
    /// The place of the task among the followers.
    place: Place,
    /// The time since when nothing has come.
    since: Option<Time>,
    /// The turns that were taken since something last came.
    spent: Spent,
    /// Whether the task has spun beside a dedicated thread.
    spun: bool,
}

impl WaitState {
    /// Returns whether the wait has neither taken turns nor followed.
    #[inline]
    fn is_new(&self) -> bool {
        self.leadership.is_none() && !self.place.is_taken() && self.since.is_none()
    }

    /// Returns whether the task leads still.
    #[inline]
    fn leads<T>(&self, lock: &LeaderLock<T>, who: Precedence) -> bool {
        self.leadership.is_some_and(|leads| leads.is_as(who) && lock.is_leader(leads))
    }

    /// Becomes the leader, unless the task leads already, or one of the same or of a higher
    /// precedence does. Returns whether the task leads.
    #[inline]
    fn lead<T>(&mut self, lock: &LeaderLock<T>, who: Precedence, waker: &Waker) -> bool {
        if !self.leads(lock, who) {
            let old = std::mem::replace(&mut self.leadership, lock.lead(who));
            old.into_iter().for_each(|old| lock.forget_waker(old));
            self.leadership.into_iter().for_each(|leads| lock.keep_waker(leads, waker));
        }
        self.leadership.is_some()
    }
}

impl ProgressEngine {
    /// Waits for what `look` finds, making progress meanwhile. The NIC comes with the result if
    /// this thread holds it.
    #[inline]
    pub fn wait<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        // A task that always finds its result would starve the other tasks of its thread. It leads
        // meanwhile, so that tasks which are to make requests of their own make them one behind the
        // other, and none waits for its answer before the next makes its request.
        let in_a_row = self.waits_in_a_row.load(Ordering::Relaxed) + 1;
        let yields = in_a_row == MOST_AT_ONCE;
        self.waits_in_a_row.store(if yields { 0 } else { in_a_row }, Ordering::Relaxed);
        let who = look.precedence();
        if yields {
            return self.gives_way(context, wait_state, who);
        }
        if !self.pacing.dedicated {
            let is_led = self.lock.is_led(who) && !wait_state.leads(&self.lock, who);
            let others_are_woken = self.others_are_woken.load(Ordering::Relaxed);
            if (is_led || others_are_woken)
                && let Some(waited) = self.waits_for_others(is_led, context, wait_state, look)
            {
                return waited;
            }
        }
        let found = self.look_once(wait_state, look);
        if found.is_ready() {
            self.count_find();
            self.has_woken(look.woke());
            return found;
        }
        if self.pacing.dedicated {
            return self.wait_dedicated(context, wait_state, look);
        }
        // A task of a higher precedence leads, and comes back soon.
        if self.lock.is_led_above(look.precedence()) {
            return self.follow(context, wait_state, look);
        }
        match self.lock.enter() {
            Some(adapter) => self.take_turns(adapter, context, wait_state, look),
            None => self.follow(context, wait_state, look),
        }
    }

    /// Leaves progress to the leader, who comes back when others have run, or lets tasks run that
    /// were woken: they may have requests to make, which leave with this one's then. Returns `None`
    /// if this task is to make progress.
    fn waits_for_others<'s, L: Look>(
        &'s self,
        is_led: bool,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Option<Poll<(L::Output, Option<Held<'s>>)>> {
        if let Some(found) = look.peek() {
            self.end(wait_state);
            self.count_find();
            return Some(Poll::Ready((found, None)));
        }
        match (wait_state.is_new(), is_led) {
            (true, true) => Some(self.follow(context, wait_state, look)),
            (true, false) => Some(self.gives_way(context, wait_state, look.precedence())),
            (false, _) => None,
        }
    }

    /// Lets other tasks run, which follow this one if they wait.
    #[cold]
    fn gives_way<T>(
        &self,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        who: Precedence,
    ) -> Poll<T> {
        self.others_are_woken.store(false, Ordering::Relaxed);
        wait_state.lead(&self.lock, who, context.waker());
        yield_to_any(context)
    }

    /// Notes whether a task that has its result has woken others before it goes on.
    #[inline]
    fn has_woken(&self, others: bool) {
        if others {
            self.others_are_woken.store(true, Ordering::Relaxed);
        }
    }

    /// Takes turns until the result is there, or other tasks must run.
    #[inline]
    pub fn take_turns<'s, L: Look>(
        &'s self,
        mut adapter: Held<'s>,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        self.turns_taken.store(self.turns_taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let who = look.precedence();
        let outranked = !wait_state.leads(&self.lock, who) && self.lock.is_led(who);
        let was_armed = adapter.disarm();
        let spin = self.spin(&adapter);
        let mut turns = wait_state.spent.begin(&self.patience, who);
        let (mut start, mut owes) = (None, true);
        let (in_vain, idle) = loop {
            let turned = self.step(&mut adapter);
            turns.taken += 1;
            if let Some(found) = look.look(HeldNic::of(self, &mut adapter)) {
                wait_state.spent.came(&self.patience, who, &mut turns);
                self.end(wait_state);
                self.has_woken(turned.woke | look.woke());
                self.tick_if(was_armed);
                return Poll::Ready((found, Some(adapter)));
            }
            if turned.found {
                wait_state.since = None;
                wait_state.spent.came(&self.patience, who, &mut turns);
            }
            owes |= turned.found;
            let mut woke = turned.woke | self.settle_if_due(&mut adapter, owes, turns.taken);
            owes = turned.found;
            woke |= look.woke();
            // A woken task may be behind this one on the same thread; and a leader, or a thread
            // that wants the NIC, waits for this one.
            if woke || outranked || adapter.is_wanted() {
                break (0, false);
            }
            if turns.taken.is_multiple_of(spin.turns_a_look) || turns.are_over() {
                let now = adapter.now();
                let idle = now.since(*wait_state.since.get_or_insert(now)) >= spin.time;
                let poll = now.since(*start.get_or_insert(now));
                if idle || turns.are_over() || poll >= QUANTUM {
                    break (turns.in_vain(), idle);
                }
            }
        };
        // Other tasks are let run before a sleep: this one may wait for them.
        let may_sleep = spin.time.is_zero() || wait_state.spent.have_others_run();
        if idle && (is_blocked() || may_sleep && self.is_watched_here()) {
            return self.sleep(adapter, context, wait_state, look);
        }
        self.tick_if(was_armed);
        self.others_are_woken.store(false, Ordering::Relaxed);
        let leads = wait_state.lead(&self.lock, who, context.waker());
        self.release(adapter);
        if leads {
            wait_state.spent.yields(in_vain);
            return yield_to_others(context);
        }
        self.follow(context, wait_state, look)
    }

    /// Sends what was posted and what turns have called for, unless there is nothing to send: the
    /// less is done between turns, the sooner the next frame is found. But a device may have kept
    /// something back, too, for which it is asked now and then. Returns whether a task was woken.
    #[inline]
    fn settle_if_due(&self, adapter: &mut Held<'_>, owes: bool, turn: u32) -> bool {
        let due =
            owes || adapter.is_rung() || adapter.has_work() || turn.is_multiple_of(TURNS_TO_SETTLE);
        due && self.settle(adapter).woke
    }

    /// Makes the task a follower: another task runs the NIC or leads, and wakes this one when it
    /// gives that up. If it did so before this task was on the list, this task finds the lock free
    /// now.
    #[cold]
    fn follow<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        assert!(!self.lock.is_mine(), "this task holds the NIC: release it before waiting");
        let who = look.precedence();
        if wait_state.leads(&self.lock, who) {
            // Another thread holds the lock for a moment only, and this task looks when it is back.
            return yield_to_others(context);
        }
        look.register(context.waker());
        self.lock.follow(&mut wait_state.place, context.waker());
        if let Some(found) = look.peek() {
            self.end(wait_state);
            return Poll::Ready((found, None));
        }
        if let Some(adapter) = self.lock.enter_unled(who) {
            // The task comes back at once, so other tasks run first, and it does not sleep.
            let leads = wait_state.lead(&self.lock, who, context.waker());
            self.lock.unfollow(&mut wait_state.place);
            self.release(adapter);
            return if leads { yield_to_others(context) } else { yield_to_any(context) };
        }
        Poll::Pending
    }

    /// Arms the device, looks once more, and only then sleeps.
    #[cold]
    fn sleep<'s, L: Look>(
        &'s self,
        mut adapter: Held<'s>,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        look.register(context.waker());
        if !self.arm(&mut adapter) {
            // Nothing would wake this task: it goes on spinning.
            let who = look.precedence();
            let leads = wait_state.lead(&self.lock, who, context.waker());
            self.release(adapter);
            return if leads { yield_to_others(context) } else { yield_to_any(context) };
        }
        if let Some(found) = look.look(HeldNic::of(self, &mut adapter)) {
            self.end(wait_state);
            // The device is armed, perhaps for longer than the time-out of a request that was
            // posted in the look.
            self.release(adapter);
            return Poll::Ready((found, None));
        }
        wait_state.since = None;
        if let Some(leadership) = wait_state.leadership.take() {
            self.lock.step_down(leadership);
        }
        self.release(adapter);
        Poll::Pending
    }

    /// Waits beside a dedicated thread that runs the NIC: this task only looks.
    fn wait_dedicated<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        // One task spins, and each only once: the spins of all tasks of a thread would add up.
        let who = look.precedence();
        if !std::mem::replace(&mut wait_state.spun, true)
            && let Some(leadership) = self.lock.lead(who)
        {
            let spun = std::time::Instant::now();
            let mut found = Poll::Pending;
            while found.is_pending() && spun.elapsed() < self.pacing.spin.min(QUANTUM) {
                for _ in 0..TURNS_A_LOOK {
                    if found.is_pending() {
                        found = self.look_once(wait_state, look);
                    }
                    std::hint::spin_loop();
                }
            }
            self.lock.step_down(leadership);
            if found.is_ready() {
                return found;
            }
        }
        look.register(context.waker());
        self.ring();
        self.look_once(wait_state, look)
    }

    /// Looks without the NIC, and ends the wait if the result is there.
    #[inline]
    fn look_once<'s, L: Look>(
        &self,
        wait_state: &mut WaitState,
        look: &mut L,
    ) -> Poll<(L::Output, Option<Held<'s>>)> {
        match look.look(HeldNic::none()) {
            Some(found) => {
                self.end(wait_state);
                Poll::Ready((found, None))
            }
            None => Poll::Pending,
        }
    }

    /// Ends a wait. If its task leads, another one will.
    #[inline]
    pub fn end(&self, wait_state: &mut WaitState) {
        if wait_state.leadership.is_some() || wait_state.place.is_taken() {
            self.stop_leading_or_following(wait_state);
        }
    }

    #[cold]
    fn stop_leading_or_following(&self, wait_state: &mut WaitState) {
        self.lock.unfollow(&mut wait_state.place);
        if let Some(leadership) = wait_state.leadership.take() {
            self.lock.resign(leadership);
        }
    }

    /// Takes a turn, and looks before the turn's acknowledgements are sent. If another thread holds
    /// the NIC, only looks. A task that finds something goes on at once, and leaves the
    /// acknowledgements for later.
    #[inline]
    pub fn turn_and_find<R>(&self, look: impl FnOnce(HeldNic<'_>) -> Option<R>) -> Option<R> {
        // A dedicated thread must not wait for what a look does.
        let Some(mut adapter) = self.enter() else { return look(HeldNic::none()) };
        self.step(&mut adapter);
        let found = look(HeldNic::of(self, &mut adapter));
        if found.is_some() {
            // While the device is armed, no watch looks before the device wakes one.
            self.keep_awake(&mut adapter);
            self.turns_taken.store(self.turns_taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            let finds = self.finds.load(Ordering::Relaxed).wrapping_add(1);
            self.finds.store(finds, Ordering::Relaxed);
            if !finds.is_multiple_of(FINDS_TO_SETTLE) {
                self.release_soon(adapter);
                return found;
            }
        }
        adapter.rung();
        self.release(adapter);
        found
    }
}
