//! Who runs the NIC, and when.
//!
//! **Inline**, whoever waits does. A future that is polled takes the NIC and spins, for a while; lets
//! other tasks run, and spins on; and when nothing has come for as long as is configured, it arms
//! the device, looks once more, and sleeps.
//!
//! | who | has |
//! |---|---|
//! | the holder | the lock: it takes turns now, and what others post it sends |
//! | the keeper | the turn's duty between two polls: it has let others run, and is back soon |
//! | those who stand by | neither; one of them is woken when the duty falls vacant |
//! | the watch | the duty when nobody waits: it wakes with the device, or looks every millisecond |
//!
//! What must never be is that somebody sleeps, the device is not armed, and nobody has the duty. So
//! who gives it up wakes one who stands by, or arms the device, or leaves the watch ticking; and who
//! would stand by says so first and looks for the duty again.
//!
//! **Dedicated**, a thread of its own has the duty for good, and others only look at their rings.

mod closing;
mod control;
mod duty;
mod errands;
mod machine;
mod watch;

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorbell_core::nic::{PostError, Refused, SendQueue, WorkRequest};
use doorbell_core::time::Time;
use doorbell_transports::{Address, Capabilities};

use closing::Handles;
pub(crate) use control::{Control, Manager, Parts, Way};
pub(crate) use duty::Duty;
pub(crate) use errands::{Errand, Errands, Leaving};
pub(crate) use machine::{Engine, Machine};
pub(crate) use watch::{Watch, block_on};

use crate::sync::{AtomicU64, Ordering};
use crate::sys::lock::Guard;
use crate::wakers::{Place, Wakers};

/// Turns before a waiting future lets other tasks run, and the time, if that passes first.
const TURNS_A_POLL: u32 = 10_000;
const QUANTUM: Duration = Duration::from_micros(40);
/// How often in a row a task may find what it waits for before others are let run.
const MOST_AT_ONCE: u64 = 4096;
/// Turns between looks at the time.
const TURNS_A_LOOK: u32 = 64;

pub(crate) type Held<'s> = Guard<'s, Box<dyn Machine>>;

/// How a NIC is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    /// How long somebody spins on a silent device before sleeping.
    pub spin: Duration,
    /// Whether a thread of its own runs it.
    pub dedicated: bool,
}

/// What all that belongs to a NIC shares.
pub(crate) struct Shared {
    duty: Duty<Box<dyn Machine>>,
    pub errands: std::sync::Arc<Errands>,
    pacing: Pacing,
    /// Those who look at memory that peers write, and so may find something when anything arrives.
    pub bystanders: Wakers,
    pub watch: Watch,
    /// How often somebody took turns who waits for something, and when that was when others were let
    /// run for the last time.
    attended: AtomicU64,
    yielded: AtomicU64,
    handles: Handles,
    pub capabilities: Capabilities,
    pub address: Address,
}

/// What somebody waits for.
pub(crate) trait Look {
    type Found;

    /// It, if it is there.
    fn look(&mut self) -> Option<Self::Found>;

    /// Has `waker` woken when it may be there. It is to be looked for once more afterwards.
    fn register(&mut self, waker: &Waker);
}

/// Somebody's waiting, from its first poll to its end.
#[derive(Default)]
pub(crate) struct Stint {
    /// Whether it is the keeper.
    keeps: bool,
    /// Its place among those who stand by.
    place: Place,
    /// Since when nothing has come.
    since: Option<Time>,
}

impl Shared {
    pub fn new(
        machine: Box<dyn Machine>,
        errands: std::sync::Arc<Errands>,
        pacing: Pacing,
        watch: Watch,
    ) -> Self {
        let (capabilities, address) = (*machine.capabilities(), machine.address().clone());
        Self {
            duty: Duty::new(machine),
            errands,
            pacing,
            bystanders: Wakers::default(),
            watch,
            attended: AtomicU64::new(0),
            yielded: AtomicU64::new(0),
            handles: Handles::default(),
            capabilities,
            address,
        }
    }

    /// Does something with the NIC in hand, for which it waits if it must.
    pub fn with<R>(&self, does: impl FnOnce(&mut dyn Machine) -> R) -> R {
        let mut machine = self.duty.claim();
        machine.catch_up();
        let result = does(&mut **machine);
        self.release(machine);
        result
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

    /// Gives the NIC up, when all is done that it owes.
    #[inline]
    pub fn release(&self, machine: Held<'_>) {
        self.duty.leave(machine, |machine| {
            machine.settle();
            machine.hasten();
        });
    }

    /// Waits for what `look` finds, making progress meanwhile. With what was found comes the NIC, if
    /// it was in hand.
    #[inline]
    pub fn wait<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        if let Some(found) = look.look() {
            self.end(stint);
            return Poll::Ready((found, None));
        }
        if self.pacing.dedicated {
            return self.wait_beside(context, stint, look);
        }
        match self.duty.enter() {
            Some(machine) => self.take_turns(machine, context, stint, look),
            None => self.stand_by(context, stint, look),
        }
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
        let attended = self.attended.load(Ordering::Relaxed) + 1;
        self.attended.store(attended, Ordering::Relaxed);
        if attended - self.yielded.load(Ordering::Relaxed) >= MOST_AT_ONCE {
            // A task that always finds what it waits for would keep all others of its thread waiting.
            self.yielded.store(attended, Ordering::Relaxed);
            self.release(machine);
            return let_others_run(context);
        }
        let kept = !stint.keeps && self.duty.is_kept();
        if machine.disarm() {
            self.watch.tick();
        }
        let (mut start, mut rest) = (None, false);
        for turn in 1..=TURNS_A_POLL {
            let turned = machine.turn();
            if let Some(found) = look.look() {
                self.end(stint);
                return Poll::Ready((found, Some(machine)));
            }
            machine.rung();
            let settled = machine.settle();
            let mut others = turned.woke || settled.woke || kept || machine.is_wanted();
            if turned.found {
                stint.since = None;
                others |= self.bystanders.wake_all();
            }
            // Whoever was woken may be behind us on this very thread; whoever keeps the duty, or
            // wants the NIC, waits for us.
            if others {
                break;
            }
            if turn % TURNS_A_LOOK == 0 {
                let now = machine.now();
                rest = now.since(*stint.since.get_or_insert(now)) >= self.pacing.spin;
                if rest || now.since(*start.get_or_insert(now)) >= QUANTUM {
                    break;
                }
            }
        }
        if rest {
            return self.sleep(machine, context, stint, look);
        }
        self.yielded.store(attended, Ordering::Relaxed);
        if stint.keeps || self.duty.keep() {
            stint.keeps = true;
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
        look.register(context.waker());
        if stint.keeps {
            // It is ours, and only the lock is taken, for a moment.
            return match look.look() {
                Some(found) => {
                    self.end(stint);
                    Poll::Ready((found, None))
                }
                None => let_others_run(context),
            };
        }
        self.duty.stand_by(&mut stint.place, context.waker());
        if let Some(found) = look.look() {
            self.end(stint);
            return Poll::Ready((found, None));
        }
        if let Some(machine) = self.duty.vacant() {
            // To come back at once is to let others run first, but not to sleep.
            stint.keeps = self.duty.keep();
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
        if !self.watch.is_kept() || machine.arm().is_err() {
            // Nothing would wake us: go on spinning.
            stint.keeps = stint.keeps || self.duty.keep();
            self.release(machine);
            return let_others_run(context);
        }
        self.drain(&mut machine);
        self.watch.quiet();
        if let Some(found) = look.look() {
            self.end(stint);
            return Poll::Ready((found, Some(machine)));
        }
        stint.since = None;
        if std::mem::take(&mut stint.keeps) {
            self.duty.rest();
        }
        self.release(machine);
        Poll::Pending
    }

    /// Takes turns until nothing comes or goes: a burst begins with one frame, and what lay behind
    /// it would wake nobody any more.
    pub fn drain(&self, machine: &mut Held<'_>) {
        loop {
            let turned = machine.turn();
            let settled = machine.settle();
            if turned.found {
                self.bystanders.wake_all();
            }
            if !turned.found && !settled.found {
                break;
            }
        }
    }

    /// A thread of its own runs the NIC: there is nothing to do but to look.
    fn wait_beside<'s, L: Look>(
        &'s self,
        context: &mut Context<'_>,
        stint: &mut Stint,
        look: &mut L,
    ) -> Poll<(L::Found, Option<Held<'s>>)> {
        let spun = std::time::Instant::now();
        while spun.elapsed() < self.pacing.spin.min(QUANTUM) {
            for _ in 0..TURNS_A_LOOK {
                if let Some(found) = look.look() {
                    self.end(stint);
                    return Poll::Ready((found, None));
                }
                std::hint::spin_loop();
            }
        }
        look.register(context.waker());
        self.ring();
        match look.look() {
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
        if stint.keeps || stint.place.is_taken() {
            self.end_duty(stint);
        }
    }

    #[cold]
    fn end_duty(&self, stint: &mut Stint) {
        self.duty.stand_down(&mut stint.place);
        if std::mem::take(&mut stint.keeps) {
            self.duty.resign();
        }
    }

    /// A turn, and all that it calls for. Whether anything came or went.
    pub fn turn(&self) -> bool {
        let Some(mut machine) = self.duty.enter() else { return false };
        let turned = machine.turn();
        let settled = machine.settle();
        if turned.found {
            self.bystanders.wake_all();
        }
        self.release(machine);
        turned.found || settled.found
    }

    /// Posts to a queue with the NIC in hand, if it is: then what was posted leaves at once.
    #[inline]
    pub fn post(
        &self,
        hand: &mut Option<Held<'_>>,
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

/// Yields in Tokio's own way. A plain wake-up of ourselves would call an idle worker to steal us.
pub(crate) fn let_others_run<T>(context: &mut Context<'_>) -> Poll<T> {
    let _ = std::future::Future::poll(std::pin::pin!(tokio::task::yield_now()), context);
    Poll::Pending
}
