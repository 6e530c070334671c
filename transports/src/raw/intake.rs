//! The intake of a raw device: the sockets by which its frames come in.
//!
//! The kernel asks the socket that was bound last first whether a frame is its own. So a busy
//! device that finds other sockets in front of its own opens another socket, and takes frames by
//! that one. Sockets in front of the new one then belong to devices that are just as busy, or were
//! opened since. A thread that lives for some milliseconds does what takes long: it looks at the
//! order of sockets, makes the socket and its ring, and closes the old ones.
//!
//! By such a change no frame is lost, comes twice, or comes in another order, as long as no ring
//! overruns. While both sockets are bound, all frames come by the old one, and are taken from it.
//! Then the old socket is closed, and the frames that the new one has, too, are passed over.
//!
//! A filter in the kernel costs a frame 40 nanoseconds, however short the filter is. So a busy
//! device that finds no other on its interface has no filter, where the protocol is RoCE's own:
//! until it sees a frame that is not its own, or finds another device, or sleeps. Each frame is
//! checked here, even behind a filter, since frames that came before the filter was attached are
//! still in the ring.

#[cfg(test)]
mod tests;

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use doorbell_core::time::Time;

use super::duplicates::Duplicates;
use super::frame::LONGEST;
use super::ring_socket::{NextFrame, Recipe, RingSocket};
use super::schedule::Schedule;
use super::socket_order::{self, SocketPlace};
use crate::stamp::Stamp;
use crate::sys::packet::PacketSocket;
use crate::sys::{thread as own_thread, virtio};

/// How long both sockets are bound. Frames that the new socket was not asked for have come by the
/// old one then. That takes microseconds, or one or two milliseconds where a driver hands frames up
/// by the batch.
const OVERLAP: Duration = Duration::from_millis(10);
/// How often a driver that sleeps is woken to look whether a thread is done, or the overlap is
/// over.
const STEP: Duration = Duration::from_millis(5);
/// The bytes of stack of a thread that reads a table and makes some calls.
const STACK: usize = 128 << 10;

/// The sockets by which a device's frames come in.
pub struct Intake {
    source: RingSocket,
    /// Memory for a frame too long for the ring's slots, where frames may hold a run.
    long: Option<Box<[u8]>>,
    recipe: Recipe,
    /// How many frames were lost by sockets that are closed.
    lost: u64,
    /// How many frames came that are not the device's.
    strangers: u64,
    schedule: Schedule,
    /// True if the kernel passes only the device's own frames.
    filters: bool,
    stage: Stage,
    /// While frames may come by two sockets: the old socket, and what was taken from it.
    overlap: Option<Overlap>,
}

/// The stages of a change to a socket in front of the others.
#[derive(Default)]
enum Stage {
    #[default]
    /// No change is under way.
    Idle,
    /// A thread looks which sockets are in front and, if any are, makes a new socket.
    Looking(JoinHandle<LookOutcome>),
    /// The old socket and the new one are both bound.
    Overlap { until: Time },
    /// The frames that the old socket had at the end of the overlap are taken.
    Ending,
    /// A thread closes the old socket, and frames of the new socket are passed over that were taken
    /// from the old one.
    Leaving(Option<JoinHandle<()>>),
}

/// The outcome of a look at the order of sockets.
enum LookOutcome {
    /// The device's socket is the only one.
    Alone,
    /// The device's socket is in front of all others.
    First,
    /// The device's socket may be behind another. With a new socket, if one could be made.
    Behind(Option<RingSocket>),
}

/// The state of the intake while frames come by two sockets.
struct Overlap {
    /// The old socket, from which frames are taken as long as it is there.
    old: Option<RingSocket>,
    duplicates: Duplicates,
    /// The most frames that are left of those that were there when the present stage began.
    rest: usize,
}

impl Intake {
    /// Opens a socket by a recipe, and receives by it.
    pub fn open(recipe: Recipe) -> io::Result<Self> {
        let source = recipe.make()?;
        recipe.begin(&source)?;
        let long = recipe.runs.then(|| vec![0; virtio::LEN + LONGEST].into());
        let (schedule, stage, overlap) = (Schedule::new(), Stage::Idle, None);
        let (lost, strangers, filters) = (0, 0, true);
        Ok(Self { source, long, recipe, lost, strangers, schedule, filters, stage, overlap })
    }

    /// Returns the socket by which frames leave, and come from now on.
    #[inline]
    pub fn socket(&self) -> &PacketSocket {
        &self.source.socket
    }

    /// Returns the socket by which the next frame comes. It may be another one after
    /// [`go_on`](Self::go_on).
    pub fn listening(&self) -> BorrowedFd<'_> {
        let old = self.overlap.as_ref().and_then(|overlap| overlap.old.as_ref());
        old.unwrap_or(&self.source).socket.as_fd()
    }

    /// Returns the most memory that the intake takes, which is while there are two sockets.
    pub fn memory(&self) -> usize {
        let RingSocket { socket, shape, .. } = &self.source;
        let queues = 2 * (socket.sending() + self.long.as_ref().map_or(0, |_| socket.queue()));
        let long = self.long.as_ref().map_or(0, |long| long.len());
        2 * shape.memory() + queues + long + Duplicates::MEMORY + STACK
    }

    /// Returns how many frames came while there was no room for them, since the last call.
    pub fn overrun(&mut self) -> u64 {
        self.source.overrun() + mem::take(&mut self.lost)
    }

    /// Returns how many frames came that are not the device's, since the last call.
    pub fn strangers(&mut self) -> u64 {
        mem::take(&mut self.strangers)
    }

    /// Passes the next frame to `take`, the size of its packets if the frame is a run, and when it
    /// came. Returns whether there was a frame.
    #[inline]
    pub fn next(&mut self, take: impl FnOnce(&[u8], Option<u16>, Stamp)) -> bool {
        if self.overlap.is_some() {
            return self.next_of_two(take);
        }
        let next = self.source.next(&mut self.long, &self.recipe.own, take);
        if next == Some(NextFrame::Anothers) {
            self.sees_another();
        }
        next.is_some()
    }

    /// Counts a frame that is not the device's, and attaches the filter, since others may follow.
    #[cold]
    fn sees_another(&mut self) {
        self.strangers += 1;
        self.filter(true);
    }

    /// Passes the next frame to `take` while frames come by two sockets.
    #[cold]
    fn next_of_two(&mut self, take: impl FnOnce(&[u8], Option<u16>, Stamp)) -> bool {
        let Some(Overlap { old, duplicates, rest }) = &mut self.overlap else { return false };
        // Frames of the new socket are passed over even while frames are taken from the old one, or
        // the new ring would overrun.
        while self.source.head().is_some_and(|head| duplicates.pass(head)) {
            self.source.next(&mut self.long, &None, |_, _, _| ());
        }
        self.source.give_back();
        let (source, notes) = match old {
            Some(old) => (old, true),
            None => (&mut self.source, false),
        };
        let Some(head) = source.head() else {
            *rest = 0;
            // Slots that were read would wake a driver that sleeps.
            source.give_back();
            return false;
        };
        if notes {
            duplicates.note(head);
        }
        *rest = rest.saturating_sub(1);
        let next = source.next(&mut self.long, &self.recipe.own, take);
        self.strangers += u64::from(next == Some(NextFrame::Anothers));
        next.is_some()
    }

    /// Counts frames that were taken, and returns whether [`go_on`](Self::go_on) is to be called.
    #[inline]
    pub fn is_due(&mut self, taken: usize) -> bool {
        self.schedule.is_due(taken)
    }

    /// Returns the time when [`go_on`](Self::go_on) is to be called, if no frame comes.
    pub fn next_step(&self, now: Time) -> Option<Time> {
        (!matches!(self.stage, Stage::Idle)).then(|| now + STEP)
    }

    /// Goes on with a change to a socket in front of the others, if it is time. Must not be called
    /// while a driver sleeps on the [listening](Self::listening) socket. The [socket](Self::socket)
    /// may be another one afterwards.
    #[cold]
    pub fn go_on(&mut self, now: Time) {
        self.stage = match mem::take(&mut self.stage) {
            Stage::Idle if self.schedule.begins(now) => self.look(),
            Stage::Looking(found) if found.is_finished() => match found.join() {
                Ok(found) => self.change(found, now),
                Err(_) => Stage::Idle,
            },
            Stage::Overlap { until } if now >= until => {
                self.expect_full_ring();
                Stage::Ending
            }
            Stage::Ending if self.has_none_left() => self.leave(),
            Stage::Leaving(left) if self.has_none_left() && has_ended(&left) => {
                self.overlap = None;
                Stage::Idle
            }
            stage => stage,
        };
        if matches!(self.stage, Stage::Idle) {
            self.schedule.rests();
        }
    }

    /// Starts a thread that looks at the order of sockets, and makes a new socket if others are in
    /// front.
    fn look(&self) -> Stage {
        let (own, recipe) = (self.source.socket.clone(), self.recipe.clone());
        let shape = self.source.shape;
        let look = move || match socket_order::place_of(&own, recipe.index, recipe.protocol) {
            Ok(SocketPlace::Alone) => LookOutcome::Alone,
            Ok(SocketPlace::First) => LookOutcome::First,
            // If no other socket can be made, the device keeps the one that it has.
            Ok(SocketPlace::Behind) => LookOutcome::Behind(recipe.make_like(shape).ok()),
            Err(_) => LookOutcome::Behind(None),
        };
        aside(look).map_or(Stage::Idle, Stage::Looking)
    }

    /// Goes on with a new socket, if there is one.
    fn change(&mut self, found: LookOutcome, now: Time) -> Stage {
        self.schedule.found(matches!(found, LookOutcome::Behind(_)));
        self.filter(!matches!(found, LookOutcome::Alone));
        let LookOutcome::Behind(Some(new)) = found else { return Stage::Idle };
        if self.recipe.begin(&new).is_err() {
            return Stage::Leaving(aside(move || drop(new)));
        }
        let old = Some(mem::replace(&mut self.source, new));
        self.filters = true;
        self.overlap = Some(Overlap { old, duplicates: Duplicates::default(), rest: 0 });
        Stage::Overlap { until: now + OVERLAP }
    }

    /// Attaches the filter that passes only the device's own frames, or removes it where the device
    /// can do without. If the kernel refuses, the next call tries again.
    pub fn filter(&mut self, own: bool) {
        let own = own || self.recipe.own.is_none();
        if self.filters == own {
            return;
        }
        let changed = match own {
            true => self.source.socket.filter(&self.recipe.filter),
            false => self.source.socket.remove_filter(),
        };
        if changed.is_ok() {
            self.filters = own;
        }
    }

    /// Has a thread close the old socket, which takes milliseconds.
    fn leave(&mut self) -> Stage {
        self.expect_full_ring();
        let old = self.overlap.as_mut().and_then(|overlap| overlap.old.take());
        Stage::Leaving(old.and_then(|mut old| {
            self.lost += old.overrun();
            aside(move || drop(old))
        }))
    }

    /// Counts the frames that the present stage must see to at most: as many as a ring holds.
    fn expect_full_ring(&mut self) {
        let slots = self.source.shape.slots;
        self.overlap.iter_mut().for_each(|overlap| overlap.rest = slots);
    }

    /// Returns whether all frames of the present stage were taken, or passed over.
    fn has_none_left(&self) -> bool {
        self.overlap.as_ref().is_none_or(|overlap| overlap.rest == 0)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // When the device is dropped, its threads end, and all that they had open is closed.
        match mem::take(&mut self.stage) {
            Stage::Looking(found) => drop(found.join()),
            Stage::Leaving(Some(left)) => drop(left.join()),
            _ => {}
        }
    }
}

fn has_ended(thread: &Option<JoinHandle<()>>) -> bool {
    thread.as_ref().is_none_or(JoinHandle::is_finished)
}

/// Has a thread of its own do some work. If no thread can be started, the work is dropped, with all
/// that it owns.
fn aside<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<JoinHandle<R>> {
    let thread = thread::Builder::new().name("doorbell-front".into()).stack_size(STACK);
    let anywhere = move || {
        own_thread::run_anywhere();
        work()
    };
    thread.spawn(anywhere).ok()
}
