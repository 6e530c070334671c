//! Where a raw device's frames come in.
//!
//! The kernel asks the socket that was opened last first whether a frame is its own. So a device that
//! is busy, and finds that others were opened behind it, opens another socket in its turn and takes
//! frames by that one: those who are asked before it are then others who are just as busy, or came
//! since. What that takes, but for two calls of a microsecond, is done by a thread that lives for as
//! long.
//!
//! No frame is lost by that or comes in another order. For some time a frame may come by the old
//! socket, the new one or both, first by the new one. What came by the old one alone came before
//! all that came by both, and so the old one is looked at before a frame of the new one is taken.

#[cfg(test)]
mod tests;

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doorbell_core::time::Time;

use super::LONGEST;
use super::doubles::{By, Doubles};
use super::order;
use super::source::{Recipe, Source};
use crate::sys::packet::PacketSocket;
use crate::sys::virtio;

/// After so many frames it is looked who is asked before.
const FRAMES: u32 = 4096;
/// And after this time; after each change, twice the time that it was.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// How long the old socket is heard: a frame that the new one was not asked for has arrived by then,
/// which takes microseconds.
const OVERLAP: Duration = Duration::from_millis(10);
/// The stack of a thread that reads a table and makes some calls.
const STACK: usize = 128 << 10;

/// Where frames come in.
pub struct Intake {
    source: Source,
    /// A frame too long for the ring's slots, where frames may hold a run.
    long: Option<Box<[u8]>>,
    recipe: Recipe,
    /// Frames that sockets lost which are no more.
    lost: u64,
    /// How many frames there are until `step` is looked at.
    left: u32,
    step: Step,
    /// What was there before `source`, while it is heard.
    old: Option<Old>,
    /// When it is time to look who is asked before, and how long from then to the next time.
    next: Time,
    pause: Duration,
}

/// How far the way to the front is.
#[derive(Default)]
enum Step {
    #[default]
    Rest,
    /// It is looked who is asked before, and if anybody is, a new source is made.
    Making(JoinHandle<Option<Source>>),
    /// Both sources are heard.
    Both { until: Time },
    /// The old source is dropped.
    Leaving(JoinHandle<()>),
}

struct Old {
    source: Source,
    doubles: Doubles,
    /// Of what it had at the end of the overlap, how many frames are left at most.
    rest: Option<usize>,
}

impl Intake {
    /// Receives what a recipe says.
    pub fn open(recipe: Recipe) -> io::Result<Self> {
        let source = recipe.make()?;
        recipe.begin(&source)?;
        let long = recipe.runs.then(|| vec![0; virtio::LEN + LONGEST].into());
        Ok(Self {
            source,
            long,
            recipe,
            lost: 0,
            left: FRAMES,
            step: Step::Rest,
            old: None,
            next: Time::ZERO,
            pause: PAUSE,
        })
    }

    /// The socket by which frames come, and leave.
    #[inline]
    pub fn socket(&self) -> &PacketSocket {
        &self.source.socket
    }

    /// The sockets by which frames come.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let old = self.old.as_ref().map(|old| &old.source);
        [Some(&self.source), old].into_iter().flatten().map(|source| source.socket.as_fd())
    }

    /// The most memory that it takes, while there are two of its rings.
    pub fn memory(&self) -> usize {
        let Source { socket, shape, .. } = &self.source;
        let long = self.long.as_ref().map_or(0, |long| long.len() + 2 * socket.queue());
        2 * shape.memory() + Doubles::MEMORY + long
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&mut self) -> u64 {
        self.source.overrun() + mem::take(&mut self.lost)
    }

    /// Passes the next frame to `take`, and the size of its packets if it is a run. Whether there
    /// was one.
    #[inline]
    pub fn next(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        match self.old {
            None => self.source.next(&mut self.long, take),
            Some(_) => self.next_of_two(take),
        }
    }

    #[cold]
    fn next_of_two(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        let (Some(old), new, long) = (&mut self.old, &mut self.source, &mut self.long) else {
            return false;
        };
        let Old { source: old, doubles, rest } = old;
        // In this order: of what came by the old one alone, all came before what the new one has.
        let new_has = new.has_other(long, |head| doubles.pass(By::New, head));
        let old_has = old.has_other(long, |head| doubles.pass(By::Old, head));
        *rest = rest.map(|rest| if old_has { rest.saturating_sub(1) } else { 0 });
        let (source, by) = match (new_has, old_has) {
            (_, true) => (old, By::Old),
            (true, false) => (new, By::New),
            (false, false) => return false,
        };
        source.head().into_iter().for_each(|head| doubles.note(by, head));
        source.next(long, take)
    }

    /// Whether it is time to [go on](Self::go_on) to the front, so many frames having been taken.
    #[inline]
    pub fn is_due(&mut self, taken: usize) -> bool {
        self.left = self.left.saturating_sub(taken as u32);
        self.left == 0
    }

    /// Takes a step to the front, if it is time. Not while somebody sleeps on the sockets. Whether
    /// there is another [socket](Self::socket) now.
    #[cold]
    pub fn go_on(&mut self, now: Time) -> bool {
        let mut changed = false;
        self.step = match mem::take(&mut self.step) {
            Step::Rest if now >= self.next => self.look(now),
            Step::Making(made) if made.is_finished() => {
                changed = self.change(made);
                if changed { Step::Both { until: now + OVERLAP } } else { Step::Rest }
            }
            Step::Both { until } if now >= until && self.has_heard_old() => self.leave(),
            Step::Leaving(left) if left.is_finished() => Step::Rest,
            step => step,
        };
        self.left = if matches!(self.step, Step::Rest) { FRAMES } else { 1 };
        changed
    }

    /// Has somebody look who is asked before, and make a new source then.
    fn look(&mut self, now: Time) -> Step {
        self.next = now + self.pause;
        let (own, recipe) = (self.source.socket.clone(), self.recipe.clone());
        let made = aside(move || {
            let behind = order::is_behind(&own, recipe.index, recipe.protocol).ok()?;
            // Where there is no socket to be had any more, the one there is does.
            behind.then(|| recipe.make().ok()).flatten()
        });
        made.map_or(Step::Rest, Step::Making)
    }

    /// Goes on with a new source, if one was made.
    fn change(&mut self, made: JoinHandle<Option<Source>>) -> bool {
        // A process that has given up rights since it opened the device would get a larger ring.
        let fits = |new: &Source| new.shape == self.source.shape;
        let made = made.join().ok().flatten().filter(fits);
        let Some(new) = made.filter(|new| self.recipe.begin(new).is_ok()) else {
            self.pause = PAUSE;
            return false;
        };
        let source = mem::replace(&mut self.source, new);
        self.old = Some(Old { source, doubles: Doubles::default(), rest: None });
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        true
    }

    /// Whether nothing that came by the old source alone can be left there: it was empty since the
    /// overlap ended, or all was taken that it could hold then.
    fn has_heard_old(&mut self) -> bool {
        let slots = self.source.shape.slots;
        self.old.as_mut().is_none_or(|old| *old.rest.get_or_insert(slots) == 0)
    }

    /// Leaves the old source to somebody who has the time: closing it takes milliseconds.
    fn leave(&mut self) -> Step {
        let Some(Old { mut source, mut doubles, .. }) = self.old.take() else { return Step::Rest };
        self.source.has_other(&mut self.long, |head| doubles.pass(By::New, head));
        self.lost += source.overrun();
        aside(move || drop(source)).map_or(Step::Rest, Step::Leaving)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // When the device is gone, so are its threads and all that it had open.
        match mem::take(&mut self.step) {
            Step::Making(made) => drop(made.join()),
            Step::Leaving(left) => drop(left.join()),
            Step::Rest | Step::Both { .. } => {}
        }
    }
}

/// Has something done beside; if there is no thread to be had, not at all.
fn aside<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<JoinHandle<R>> {
    let thread = thread::Builder::new().name("doorbell-front".into()).stack_size(STACK);
    thread.spawn(work).ok()
}
