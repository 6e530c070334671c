//! Where a raw device's frames come in.
//!
//! The kernel asks the socket that was bound last first whether a frame is its own. So a device
//! that is busy, and finds that others were opened behind it, makes another socket in its turn and
//! takes frames by that one: those who are asked before it are then others who are just as busy, or
//! came since. A thread that lives for some milliseconds does what takes long: it looks, makes the
//! socket and its ring, and closes the old ones.
//!
//! No frame is lost by that, or comes twice or in another order, as long as no ring overruns. While
//! both sockets are bound, all frames come by the old one, and are taken from it. Then the old one
//! is left, and what the new one has of those is passed over.
//!
//! A filter in the kernel, too, costs a frame 40 nanoseconds, however short it is. So a device that
//! is busy, and finds no other on its interface, does without, where the protocol is RoCE's own:
//! until it sees a frame that is not its own, or finds another device, or sleeps. Each frame is
//! checked here, also behind a filter: what came before it was attached is in the ring still.

#[cfg(test)]
mod tests;

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doorbell_core::time::Time;

use super::LONGEST;
use super::doubles::Doubles;
use super::order::{self, Standing};
use super::schedule::Schedule;
use super::source::{Recipe, Source};
use crate::sys::packet::PacketSocket;
use crate::sys::{thread as own_thread, virtio};

/// How long both sockets are bound: what the new one was not asked for has come by the old one
/// then. It takes microseconds, and where a driver hands frames up by the batch, one or two
/// milliseconds.
const OVERLAP: Duration = Duration::from_millis(10);
/// How often whoever sleeps looks whether a thread is done, or the overlap over.
const STEP: Duration = Duration::from_millis(5);
/// The stack of a thread that reads a table and makes some calls.
const STACK: usize = 128 << 10;

/// Where frames come in.
pub struct Intake {
    source: Source,
    /// A frame too long for the ring's slots, where frames may hold a run.
    long: Option<Box<[u8]>>,
    recipe: Recipe,
    /// Frames that sockets lost which are no more, and those that are not its own.
    lost: u64,
    strangers: u64,
    schedule: Schedule,
    /// Whether the kernel passes only its own frames.
    filters: bool,
    step: Step,
    /// What the new source may have that was taken from the old one.
    overlap: Option<Overlap>,
}

/// How far the way to the front is.
#[derive(Default)]
enum Step {
    #[default]
    Rest,
    /// It is looked who is asked before, and if anybody is, a new source is made.
    Looking(JoinHandle<Found>),
    /// Both sources are bound.
    Overlap { until: Time },
    /// What the old one had at the end of that is taken.
    Ending,
    /// A source is dropped, and what the new one has that was taken from it is passed over.
    Leaving(Option<JoinHandle<()>>),
}

/// What was found of those who are asked before.
enum Found {
    /// There is nobody else.
    Alone,
    /// There is nobody before.
    First,
    /// There is somebody, or it can't be told. A new source, if there was one to be had.
    Behind(Option<Source>),
}

struct Overlap {
    /// From which frames are taken, as long as it is there.
    old: Option<Source>,
    doubles: Doubles,
    /// Of the frames that were there when the last step was taken, how many are left at most.
    rest: usize,
}

impl Intake {
    /// Receives what a recipe says.
    pub fn open(recipe: Recipe) -> io::Result<Self> {
        let source = recipe.make()?;
        recipe.begin(&source)?;
        let long = recipe.runs.then(|| vec![0; virtio::LEN + LONGEST].into());
        let (schedule, step, overlap) = (Schedule::new(), Step::Rest, None);
        let (lost, strangers, filters) = (0, 0, true);
        Ok(Self { source, long, recipe, lost, strangers, schedule, filters, step, overlap })
    }

    /// The socket by which frames come from now on, and leave.
    #[inline]
    pub fn socket(&self) -> &PacketSocket {
        &self.source.socket
    }

    /// The socket by which the next frame comes: another one when this has [gone on](Self::go_on).
    pub fn listening(&self) -> BorrowedFd<'_> {
        let old = self.overlap.as_ref().and_then(|overlap| overlap.old.as_ref());
        old.unwrap_or(&self.source).socket.as_fd()
    }

    /// The most memory that it takes, which is while there are two sources.
    pub fn memory(&self) -> usize {
        let Source { socket, shape, .. } = &self.source;
        let queues = 2 * (socket.sending() + self.long.as_ref().map_or(0, |_| socket.queue()));
        let long = self.long.as_ref().map_or(0, |long| long.len());
        2 * shape.memory() + queues + long + Doubles::MEMORY + STACK
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&mut self) -> u64 {
        self.source.overrun() + mem::take(&mut self.lost)
    }

    /// How many frames came that are not its own, since this was last asked.
    pub fn strangers(&mut self) -> u64 {
        mem::take(&mut self.strangers)
    }

    /// Passes the next frame to `take`, and the size of its packets if it is a run. Whether there
    /// was one.
    #[inline]
    pub fn next(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        if self.overlap.is_some() {
            return self.next_of_two(take);
        }
        let next = self.source.next(&mut self.long, &self.recipe.own, take);
        if next == Some(false) {
            self.sees_another();
        }
        next.is_some()
    }

    /// A frame is not its own: others may follow.
    #[cold]
    fn sees_another(&mut self) {
        self.strangers += 1;
        self.filter(true);
    }

    #[cold]
    fn next_of_two(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        let Some(Overlap { old, doubles, rest }) = &mut self.overlap else { return false };
        // Also while the old one is taken from, or the new one would overrun.
        while self.source.head().is_some_and(|head| doubles.pass(head)) {
            self.source.next(&mut self.long, &None, |_, _| ());
        }
        self.source.give_back();
        let (source, notes) = match old {
            Some(old) => (old, true),
            None => (&mut self.source, false),
        };
        let Some(head) = source.head() else {
            *rest = 0;
            // Or whoever sleeps would be woken for a slot that was read.
            source.give_back();
            return false;
        };
        if notes {
            doubles.note(head);
        }
        *rest = rest.saturating_sub(1);
        let next = source.next(&mut self.long, &self.recipe.own, take);
        self.strangers += u64::from(next == Some(false));
        next.is_some()
    }

    /// Whether it may be time to [go on](Self::go_on) to the front, so many frames having been
    /// taken.
    #[inline]
    pub fn is_due(&mut self, taken: usize) -> bool {
        self.schedule.is_due(taken)
    }

    /// When it is time to go on, if nothing comes.
    pub fn next_step(&self, now: Time) -> Option<Time> {
        (!matches!(self.step, Step::Rest)).then(|| now + STEP)
    }

    /// Takes a step to the front, if it is time. Not while somebody sleeps on what is
    /// [listened](Self::listening) to. The [socket](Self::socket) may be another then.
    #[cold]
    pub fn go_on(&mut self, now: Time) {
        self.step = match mem::take(&mut self.step) {
            Step::Rest if self.schedule.begins(now) => self.look(),
            Step::Looking(found) if found.is_finished() => match found.join() {
                Ok(found) => self.change(found, now),
                Err(_) => Step::Rest,
            },
            Step::Overlap { until } if now >= until => {
                self.counts_rest();
                Step::Ending
            }
            Step::Ending if self.has_no_rest() => self.leave(),
            Step::Leaving(left) if self.has_no_rest() && has_ended(&left) => {
                self.overlap = None;
                Step::Rest
            }
            step => step,
        };
        if matches!(self.step, Step::Rest) {
            self.schedule.rests();
        }
    }

    /// Has somebody look who is asked before, and make a new source then.
    fn look(&self) -> Step {
        let (own, recipe) = (self.source.socket.clone(), self.recipe.clone());
        let shape = self.source.shape;
        let look = move || match order::standing(&own, recipe.index, recipe.protocol) {
            Ok(Standing::Alone) => Found::Alone,
            Ok(Standing::First) => Found::First,
            // Where there is no other source to be had, the one there is does.
            Ok(Standing::Behind) => Found::Behind(recipe.make_like(shape).ok()),
            Err(_) => Found::Behind(None),
        };
        aside(look).map_or(Step::Rest, Step::Looking)
    }

    /// Goes on with a new source, if there is one.
    fn change(&mut self, found: Found, now: Time) -> Step {
        self.schedule.found(matches!(found, Found::Behind(_)));
        self.filter(!matches!(found, Found::Alone));
        let Found::Behind(Some(new)) = found else { return Step::Rest };
        if self.recipe.begin(&new).is_err() {
            return Step::Leaving(aside(move || drop(new)));
        }
        let old = Some(mem::replace(&mut self.source, new));
        self.filters = true;
        self.overlap = Some(Overlap { old, doubles: Doubles::default(), rest: 0 });
        Step::Overlap { until: now + OVERLAP }
    }

    /// Has the kernel pass only its own frames, or all that are not others' in any case. If the
    /// kernel refuses, the next occasion will do.
    pub fn filter(&mut self, own: bool) {
        let own = own || self.recipe.own.is_none();
        if self.filters == own {
            return;
        }
        let changed = match own {
            true => self.source.socket.filter(&self.recipe.filter),
            false => self.source.socket.filter_no_more(),
        };
        if changed.is_ok() {
            self.filters = own;
        }
    }

    /// Leaves the old source: closing it takes milliseconds.
    fn leave(&mut self) -> Step {
        self.counts_rest();
        let old = self.overlap.as_mut().and_then(|overlap| overlap.old.take());
        Step::Leaving(old.and_then(|mut old| {
            self.lost += old.overrun();
            aside(move || drop(old))
        }))
    }

    /// There are no more frames than a ring holds.
    fn counts_rest(&mut self) {
        let slots = self.source.shape.slots;
        self.overlap.iter_mut().for_each(|overlap| overlap.rest = slots);
    }

    /// Whether all of them were taken, or passed over.
    fn has_no_rest(&self) -> bool {
        self.overlap.as_ref().is_none_or(|overlap| overlap.rest == 0)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // When the device is gone, so are its threads and all that it had open.
        match mem::take(&mut self.step) {
            Step::Looking(found) => drop(found.join()),
            Step::Leaving(Some(left)) => drop(left.join()),
            _ => {}
        }
    }
}

fn has_ended(thread: &Option<JoinHandle<()>>) -> bool {
    thread.as_ref().is_none_or(JoinHandle::is_finished)
}

/// Has something done beside. If there is no thread to be had, it is forgotten, with all that it
/// has.
fn aside<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<JoinHandle<R>> {
    let thread = thread::Builder::new().name("doorbell-front".into()).stack_size(STACK);
    let anywhere = move || {
        own_thread::run_anywhere();
        work()
    };
    thread.spawn(anywhere).ok()
}
