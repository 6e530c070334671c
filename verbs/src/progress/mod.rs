//! Who runs the NIC, and when.
//!
//! **Inline**, whoever waits does. A future that is polled takes the NIC and spins, for a while;
//! lets other tasks run, and spins on; and when nothing has come for as long as is configured, it
//! arms the device, looks once more, and sleeps.
//!
//! | who | has |
//! |---|---|
//! | the holder | the lock: it takes turns now, and what others post it sends |
//! | the keeper | the turn's duty between two polls: it has let others run, and is back soon |
//! | those who stand by | neither; one of them is woken when the duty falls vacant |
//! | the watch | the duty when nobody waits: it wakes with the device, or looks every millisecond |
//!
//! What must never be is that somebody sleeps, the device is not armed, and nobody has the duty. So
//! who gives it up wakes one who stands by, or arms the device, or leaves the watch ticking; and
//! who would stand by says so first and looks for the duty again.
//!
//! **Dedicated**, a thread of its own has the duty for good, and others only look at their rings.

mod closing;
mod duty;
pub(crate) mod hand;
mod watch;

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorbell_core::nic::{PostError, Refused, SendQueue, WorkRequest};
use doorbell_core::time::Time;
use doorbell_transports::{Address, Capabilities};

use closing::Handles;
pub(crate) use duty::Duty;
pub use duty::Precedence;
pub(crate) use watch::{Next, Patrol, Watch};

pub(crate) use crate::adapter::{Engine, Machine, Turned};
pub(crate) use crate::control::{
    Control, Errand, Errands, Granted, Leaving, Manager, Setting, Way, granted_as,
};
use crate::waiting::blocking::is_blocked;
pub(crate) use crate::waiting::blocking::{block_on, let_others_run};

use crate::hand::AtHand;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::lock::Guard;
use crate::wakers::{Place, Wakers};

/// Turns before a waiting future lets other tasks run, and the time, if that passes first.
const TURNS_A_POLL: u32 = 10_000;
const QUANTUM: Duration = Duration::from_micros(40);
/// How often in a row a task may find what it waits for before others are let run.
const MOST_AT_ONCE: u32 = 512;
/// How many of them it may find at once before a turn is taken for others.
const FINDS_A_TURN: u32 = 32;
/// Of so many finds, one does what turns have called for; the others may leave it to the next.
const FINDS_TO_SETTLE: u32 = 16;
/// Turns, at the most, without a look at what there is to send.
const TURNS_TO_SETTLE: u32 = 16;
/// Turns before sleeping that found something: more of that is no time to sleep.
const MOST_TO_DRAIN: u32 = 256;
/// Turns between looks at the time.
const TURNS_A_LOOK: u32 = 64;
/// Turns before sleeping where it is likely that nothing comes.
const TURNS_TO_SLEEP: u32 = 4;

pub(crate) type Held<'s> = Guard<'s, Box<dyn Machine>>;

/// How a NIC is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    /// How long somebody spins on a silent device before sleeping.
    pub spin: Duration,
    /// Whether a thread of its own runs it.
    pub dedicated: bool,
}

/// How somebody spins before sleeping.
#[derive(Clone, Copy, Debug)]
struct Spin {
    /// For how long nothing has to come.
    time: Duration,
    turns_a_look: u32,
}

/// What all that belongs to a NIC shares.
pub(crate) struct Shared {
    pub(crate) duty: Duty<Box<dyn Machine>>,
    pub errands: Arc<Errands>,
    pacing: Pacing,
    /// Those who look at memory that peers write, and so may find something when anything arrives.
    pub bystanders: Wakers,
    pub watch: Watch,
    /// How often somebody took turns who waits for something.
    attended: AtomicU64,
    /// How often in a row somebody waited, since others were let run.
    streak: AtomicU32,
    /// How often somebody found at once what he waited for.
    finds: AtomicU32,
    handles: Handles,
    me: Weak<Self>,
    pub capabilities: Capabilities,
    pub address: Address,
}

/// What somebody waits for: see [`Nic::wait_for`](crate::Nic::wait_for).
pub trait Look {
    /// What is found. It goes through many hands: what is more than a few words is better kept
    /// aside by who looks, who then finds nothing but that it is there.
    type Found;

    /// It, if it is there.
    ///
    /// It is looked for after each turn, with the NIC in hand if nobody else has it: what is posted
    /// by that leaves at once, and nothing of the NIC is to be awaited, made or dropped.
    fn look(&mut self, nic: AtHand<'_>) -> Option<Self::Found>;

    /// Has `waker` woken when it may be there. It is looked for once more afterwards.
    fn register(&mut self, waker: &Waker);

    /// Whether it is this one who spins, if others wait for other things.
    #[inline]
    fn precedence(&self) -> Precedence {
        Precedence::Awaits
    }

    /// Whether looking has woken somebody else since this was asked last, who should be let run.
    #[inline]
    fn woke(&mut self) -> bool {
        false
    }
}

/// Somebody's waiting, from its first poll to its end.
#[derive(Default)]
pub(crate) struct Stint {
    /// As what it is the keeper, unless another has taken that over.
    keeps: Option<Precedence>,
    /// Its place among those who stand by.
    place: Place,
    /// Since when nothing has come.
    since: Option<Time>,
    /// Whether it has spun beside a thread that runs the NIC.
    spun: bool,
}

impl Stint {
    /// Whether it is the keeper still.
    #[inline]
    fn has<T>(&self, duty: &Duty<T>, who: Precedence) -> bool {
        self.keeps.is_some() && duty.is_with(who)
    }
}

impl Shared {
    pub fn new(
        machine: Box<dyn Machine>,
        errands: Arc<Errands>,
        pacing: Pacing,
        watch: Watch,
    ) -> Arc<Self> {
        let (capabilities, address) = (*machine.capabilities(), machine.address().clone());
        Arc::new_cyclic(|me| Self {
            duty: Duty::new(machine),
            errands,
            pacing,
            bystanders: Wakers::default(),
            watch,
            attended: AtomicU64::new(0),
            streak: AtomicU32::new(0),
            finds: AtomicU32::new(0),
            handles: Handles::default(),
            me: me.clone(),
            capabilities,
            address,
        })
    }

    /// Does something with the NIC in hand, for which it waits if it must.
    pub fn with<R>(&self, does: impl FnOnce(&mut dyn Machine) -> R) -> R {
        let mut machine = self.duty.claim();
        machine.catch_up();
        let result = does(&mut **machine);
        self.release(machine);
        result
    }

    /// Whether a thread of its own runs it.
    pub fn is_dedicated(&self) -> bool {
        self.pacing.dedicated
    }

    /// The NIC, if nobody has it, for a program that is to run it: not if a thread does.
    #[inline]
    pub fn enter(&self) -> Option<Held<'_>> {
        if self.pacing.dedicated { None } else { self.duty.enter() }
    }

    /// Has what was posted sent, by this thread if nobody else is at it.
    #[inline]
    pub fn ring(&self) {
        if let Some(mut machine) = self.duty.ring() {
            machine.catch_up();
            self.release(machine);
        }
    }

    /// Has an errand run.
    pub fn run(&self, errand: Errand) {
        self.errands.add(errand);
        self.ring();
    }

    /// Gives the NIC up, when all is done that it owes. Whether that sent anything.
    #[inline]
    pub fn release(&self, machine: Held<'_>) -> bool {
        let mut sent = false;
        self.duty.leave(machine, |machine| sent |= self.pay(machine));
        sent
    }

    /// Does all that the NIC owes. Whether that sent anything.
    #[inline]
    pub(crate) fn pay(&self, machine: &mut Box<dyn Machine>) -> bool {
        let settled = machine.settle();
        if settled.heard {
            self.bystanders.wake_all();
        }
        machine.hasten();
        settled.found
    }

    /// Gives the NIC up, for whoever goes on at once. What the last turn called for,
    /// acknowledgements above all, goes behind what is posted next, or when the watch takes a turn,
    /// which it does within a millisecond while the device is not armed: it is not where anybody
    /// has found something.
    #[inline]
    pub fn release_soon(&self, machine: Held<'_>) {
        if machine.has_work() {
            self.release(machine);
            return;
        }
        let mut rung = false;
        self.duty.leave(machine, |machine| {
            if std::mem::replace(&mut rung, true) {
                self.pay(machine);
            }
        });
    }

    /// Waits for what `look` finds, making progress meanwhile. With what was found comes the NIC,
    /// if it was in hand.
    #[inline]
    pub fn wait<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        // A task that always finds what it waits for would keep all others of its thread waiting.
        let streak = self.streak.load(Ordering::Relaxed) + 1;
        self.streak.store(if streak == MOST_AT_ONCE { 0 } else { streak }, Ordering::Relaxed);
        if streak == MOST_AT_ONCE {
            return let_others_run(context);
        }
        let found = self.glance(stint, look);
        if found.is_ready() {
            self.goes_on();
            return found;
        }
        if self.pacing.dedicated {
            return self.wait_beside(context, stint, look);
        }
        match self.duty.enter() {
            Some(machine) => self.take_turns(machine, context, stint, look),
            None => self.stand_by(context, stint, look),
        }
    }

    /// Counts that somebody found at once what he waited for. If that goes on, peers would wait for
    /// as long for what is owed them, and so a turn is taken now and then.
    #[inline]
    pub fn goes_on(&self) {
        let finds = self.finds.load(Ordering::Relaxed).wrapping_add(1);
        self.finds.store(finds, Ordering::Relaxed);
        if finds.is_multiple_of(FINDS_A_TURN) && !self.pacing.dedicated {
            self.turn();
        }
    }

    /// A turn, of which all hear who look at memory that peers write: also if somebody has found
    /// what he waited for, for they may wait for the same.
    #[inline]
    pub fn step(&self, machine: &mut Held<'_>) -> Turned {
        let turned = machine.turn();
        let woke = turned.found && self.bystanders.wake_all();
        Turned { woke: turned.woke || woke, ..turned }
    }

    /// Does what was posted and what a turn called for.
    #[inline]
    pub fn settle(&self, machine: &mut Held<'_>) -> Turned {
        machine.rung();
        let settled = machine.settle();
        let woke = settled.heard && self.bystanders.wake_all();
        Turned { woke: settled.woke || woke, ..settled }
    }

    /// Takes turns until it is found, or others are to run.
    #[inline]
    pub fn take_turns<'s, L: Look>(
        &'s self,
        mut machine: Held<'s>,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        self.attended.store(self.attended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let who = look.precedence();
        let kept = !stint.has(&self.duty, who) && self.duty.is_kept(who);
        let was_armed = machine.disarm();
        let spin = self.spin(&machine);
        let (mut start, mut rest, mut owes) = (None, false, true);
        for turn in 1..=TURNS_A_POLL {
            let turned = self.step(&mut machine);
            if let Some(found) = look.look(AtHand::of(self, &mut machine)) {
                self.end(stint);
                self.ticks_if(was_armed);
                return Poll::Ready((found, Some(machine)));
            }
            if turned.found {
                (stint.since, owes) = (None, true);
            }
            let mut woke = turned.woke;
            // What comes next is found the sooner the less is done in between. A device may have
            // kept something back, too, for which it is asked now and then.
            if owes || machine.is_rung() || machine.has_work() || turn % TURNS_TO_SETTLE == 0 {
                woke |= self.settle(&mut machine).woke;
                owes = turned.found;
            }
            woke |= look.woke();
            // Whoever was woken may be behind us on this very thread; whoever keeps the duty, or
            // wants the NIC, waits for us.
            if woke || kept || machine.is_wanted() {
                break;
            }
            if turn % spin.turns_a_look == 0 {
                let now = machine.now();
                rest = now.since(*stint.since.get_or_insert(now)) >= spin.time;
                if rest || now.since(*start.get_or_insert(now)) >= QUANTUM {
                    break;
                }
            }
        }
        if rest && (is_blocked() || self.is_watched_here()) {
            return self.sleep(machine, context, stint, look);
        }
        self.ticks_if(was_armed);
        if stint.has(&self.duty, who) || self.duty.keep(who) {
            stint.keeps = Some(who);
            self.release(machine);
            return let_others_run(context);
        }
        self.release(machine);
        self.stand_by(context, stint, look)
    }

    /// Somebody else runs the NIC, or keeps the duty, and is to wake us when giving it up. Who gave
    /// it up before we said that we wait has not seen us: then it is free now.
    #[cold]
    fn stand_by<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        assert!(!self.duty.is_mine(), "this task has the NIC in hand: let it go before it waits");
        look.register(context.waker());
        let who = look.precedence();
        let keeps = stint.has(&self.duty, who);
        if !keeps {
            self.duty.stand_by(&mut stint.place, context.waker());
        }
        let found = self.glance(stint, look);
        if found.is_ready() {
            return found;
        }
        if keeps {
            // The duty is ours, and only the lock is taken, for a moment.
            return let_others_run(context);
        }
        if let Some(machine) = self.duty.vacant(who) {
            // To come back at once is to let others run first, but not to sleep.
            stint.keeps = self.duty.keep(who).then_some(who);
            self.duty.stand_down(&mut stint.place);
            self.release(machine);
            return let_others_run(context);
        }
        Poll::Pending
    }

    /// Arms the device, looks once more, and only then sleeps.
    #[cold]
    fn sleep<'s, L: Look>(
        &'s self,
        mut machine: Held<'s>,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        look.register(context.waker());
        if !self.arm(&mut machine) {
            // Nothing would wake us: go on spinning.
            let who = look.precedence();
            let keeps = stint.has(&self.duty, who) || self.duty.keep(who);
            stint.keeps = keeps.then_some(who);
            self.release(machine);
            return let_others_run(context);
        }
        if let Some(found) = look.look(AtHand::of(self, &mut machine)) {
            self.end(stint);
            // The device is armed, perhaps for later than what was posted in the look is to be
            // timed.
            self.release(machine);
            return Poll::Ready((found, None));
        }
        stint.since = None;
        if let Some(who) = stint.keeps.take() {
            self.duty.rest(who);
        }
        self.release(machine);
        Poll::Pending
    }

    /// Arms the device, and looks once more. Whether somebody will be woken who sleeps now.
    ///
    /// The watch is quiet before: if it wakes from here on, and finds the NIC taken, it looks again
    /// soon, and nobody takes that back.
    pub fn arm(&self, machine: &mut Held<'_>) -> bool {
        self.watch.quiet();
        machine.rests(self.pacing.spin);
        self.settle(machine);
        if machine.arm().is_err() {
            self.watch.tick();
            return false;
        }
        if self.drain(machine) {
            return true;
        }
        machine.disarm();
        self.watch.tick();
        false
    }

    /// Takes turns until nothing comes or goes: a burst begins with one frame, and what lay behind
    /// it would wake nobody any more. Not for long: whether it came to that.
    fn drain(&self, machine: &mut Held<'_>) -> bool {
        for _ in 0..MOST_TO_DRAIN {
            let turned = self.step(machine);
            let settled = self.settle(machine);
            if !turned.found && !settled.found {
                return true;
            }
        }
        false
    }

    /// A thread of its own runs the NIC: there is nothing to do but to look.
    fn wait_beside<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        // One spins, and each only once: the others of a task, or of a thread, would add up.
        let who = look.precedence();
        if !std::mem::replace(&mut stint.spun, true) && self.duty.keep(who) {
            let spun = std::time::Instant::now();
            let mut found = Poll::Pending;
            while found.is_pending() && spun.elapsed() < self.pacing.spin.min(QUANTUM) {
                for _ in 0..TURNS_A_LOOK {
                    if found.is_pending() {
                        found = self.glance(stint, look);
                    }
                    std::hint::spin_loop();
                }
            }
            self.duty.rest(who);
            if found.is_ready() {
                return found;
            }
        }
        look.register(context.waker());
        self.ring();
        self.glance(stint, look)
    }

    /// A look, with which somebody's waiting is over if it finds something.
    #[inline]
    fn glance<'s, L: Look>(
        &self,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        match look.look(AtHand::nothing()) {
            Some(found) => {
                self.end(stint);
                Poll::Ready((found, None))
            }
            None => Poll::Pending,
        }
    }

    /// Ends somebody's waiting: the duty, if it had that, is for another.
    #[inline]
    pub fn end(&self, stint: &mut Stint) {
        if stint.keeps.is_some() || stint.place.is_taken() {
            self.end_duty(stint);
        }
    }

    #[cold]
    fn end_duty(&self, stint: &mut Stint) {
        self.duty.stand_down(&mut stint.place);
        if let Some(who) = stint.keeps.take() {
            self.duty.resign(who);
        }
    }

    /// A turn, and all that it calls for. Whether anything came or went.
    pub fn turn(&self) -> bool {
        let Some(mut machine) = self.duty.enter() else { return false };
        let turned = self.step(&mut machine);
        // A thread that runs the NIC may sleep on the device, and no watch would look in its place.
        if turned.found && !self.pacing.dedicated {
            self.stays_awake(&mut machine);
        }
        machine.rung();
        self.release(machine) | turned.found
    }

    /// Somebody takes turns, and need not be woken: the watch looks whether that goes on.
    #[inline]
    fn stays_awake(&self, machine: &mut Held<'_>) {
        let was_armed = machine.disarm();
        self.ticks_if(was_armed);
    }

    /// Has the watch look soon if the device was armed until now.
    #[inline]
    fn ticks_if(&self, was_armed: bool) {
        if was_armed {
            self.watch.tick();
        }
    }

    /// How whoever waits now spins before sleeping.
    #[inline]
    fn spin(&self, machine: &Held<'_>) -> Spin {
        if self.pacing.spin.is_zero() || machine.is_sparse() {
            Spin { time: Duration::ZERO, turns_a_look: TURNS_TO_SLEEP }
        } else {
            Spin { time: self.pacing.spin, turns_a_look: TURNS_A_LOOK }
        }
    }

    /// A turn, and a look in the midst of it; only a look, if another has the NIC. Who finds
    /// something goes on at once with it.
    #[inline]
    pub fn turn_and_find<R>(&self, look: impl FnOnce(AtHand<'_>) -> Option<R>) -> Option<R> {
        // A thread that runs the NIC is not to be kept waiting for what a look does.
        let Some(mut machine) = self.enter() else { return look(AtHand::nothing()) };
        self.step(&mut machine);
        let found = look(AtHand::of(self, &mut machine));
        if found.is_some() {
            // While the device is armed, nobody looks before it wakes somebody.
            self.stays_awake(&mut machine);
            self.attended.store(self.attended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            let finds = self.finds.load(Ordering::Relaxed).wrapping_add(1);
            self.finds.store(finds, Ordering::Relaxed);
            if !finds.is_multiple_of(FINDS_TO_SETTLE) {
                self.release_soon(machine);
                return found;
            }
        }
        machine.rung();
        self.release(machine);
        found
    }

    /// Posts to a queue with the NIC in hand, if it is: then what was posted leaves at once.
    #[inline]
    pub fn post(
        &self,
        hand: Option<&mut Box<dyn Machine>>,
        queue: &mut SendQueue,
        request: WorkRequest,
    ) -> Result<(), Refused<WorkRequest>> {
        queue.post(request)?;
        match hand {
            Some(machine) => machine.posted(queue),
            None => {
                queue.ring();
                self.ring();
            }
        }
        Ok(())
    }
}

/// Whether a request was refused for want of room.
pub(crate) fn is_full(why: &PostError) -> bool {
    matches!(why, PostError::Full { .. } | PostError::SharedFull { .. })
}
