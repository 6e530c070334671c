//! Receives that the program has posted: the places of their outcomes, and the tasks that wait.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::task::Waker;

use slab::Slab;

use super::arrived::{Arrived, Met, Pull};
use super::places::{Places, ReceiveId, Seen};
use crate::matching::{Envelope, Turn};
use crate::tagged::error::ReceiveError;
use crate::tagged::pacing::Receive;
use crate::tagged::pull::Target;
use crate::tagged::wire::Short;

/// The outcome of a receive.
pub type Outcome = Result<Met, ReceiveError>;

/// The receives that were posted and whose outcomes the program has not taken. The memory of a
/// receive that is over serves the next.
#[derive(Debug, Default)]
pub struct Receives {
    entries: Slab<Entry>,
    generation: u32,
    places: Arc<Places>,
    /// Receives whose outcomes are in their places, from where programs take them without a lock.
    /// Some may be over.
    short: VecDeque<ReceiveId>,
}

/// The most receives whose memory is kept when none is posted.
const MOST_KEPT: usize = 4096;

/// The remains of a receive that is dropped.
#[derive(Default, Debug)]
pub struct Left {
    pub outcome: Option<Outcome>,
    /// The pull of the receive's message, if there is one.
    pub pull: Option<Arc<Pull>>,
    /// The waker of the task that has waited, to be dropped without the lock.
    pub waker: Option<Waker>,
    /// The memory that the receive was to fill.
    pub target: Option<Arc<Target>>,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    /// The longest body that the receive takes.
    room: usize,
    /// The receive among those that wait for messages, once it has waited.
    waits: Option<Receive>,
    outcome: Come,
    /// The waker of the task that sleeps until the outcome comes.
    waker: Option<Waker>,
    /// The pull of the receive's message, if it has met a long one.
    pull: Weak<Pull>,
    /// The memory of the program that the receive is to fill, if the program has given some.
    target: Option<Arc<Target>>,
}

/// The outcome of a receive, as far as it has come.
#[derive(Debug)]
enum Come {
    Nothing,
    Here(Outcome),
    /// A short message in the place of the receive, with its turn.
    Short(Turn),
}

impl Come {
    fn is_none(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl Receives {
    /// Returns the places of the receives.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Enters a receive of at most `room` bytes, into memory of the program if it has given some.
    pub fn enter(&mut self, room: usize, target: Option<Arc<Target>>) -> ReceiveId {
        self.reclaim();
        // Places begin with zero, which is no receive's generation.
        self.generation = self.generation.wrapping_add(1).max(1);
        let generation = self.generation;
        let (waits, outcome, waker, pull) = (None, Come::Nothing, None, Weak::new());
        let entry = Entry { generation, room, waits, outcome, waker, pull, target };
        let place = self.entries.insert(entry) as u32;
        self.places.reach(place);
        ReceiveId { place, generation }
    }

    /// Frees the place of a receive whose outcome was taken without the lock, if there is one.
    /// Called for each receive that is entered, this keeps as few as are under way.
    #[inline]
    fn reclaim(&mut self) {
        for _ in 0..2 {
            let Some(&id) = self.short.front() else { return };
            let is_there = self.get_mut(id).is_some();
            if is_there && !self.places.was_taken(id) {
                return self.short.rotate_left(1);
            }
            self.short.pop_front();
            if is_there {
                self.remove(id);
            }
        }
    }

    #[inline]
    fn get_mut(&mut self, ReceiveId { place, generation }: ReceiveId) -> Option<&mut Entry> {
        self.entries.get_mut(place as usize).filter(|entry| entry.generation == generation)
    }

    /// Returns how long a body the receive takes, unless it was dropped.
    pub fn room(&self, ReceiveId { place, generation }: ReceiveId) -> Option<usize> {
        let entry = self.entries.get(place as usize)?;
        (entry.generation == generation).then_some(entry.room)
    }

    /// Returns the memory of the program that a receive is to fill.
    pub fn target(&mut self, id: ReceiveId) -> Option<Arc<Target>> {
        self.get_mut(id)?.target.clone()
    }

    /// Notes that a receive waits for a message.
    pub fn waits(&mut self, id: ReceiveId, receive: Receive) {
        if let Some(entry) = self.get_mut(id) {
            entry.waits = Some(receive);
        }
    }

    /// Returns the receive among those that wait for messages, if it may still be one of them.
    pub fn waits_as(&mut self, id: ReceiveId) -> Option<Receive> {
        self.get_mut(id).filter(|entry| entry.outcome.is_none())?.waits
    }

    /// Gives a receive its outcome, unless it has one. Returns the waker of the task that waits.
    ///
    /// # Errors
    /// Returns the outcome if the receive was dropped.
    #[inline]
    pub fn put(&mut self, id: ReceiveId, outcome: Outcome) -> Result<Option<Waker>, Outcome> {
        let Some(entry) = self.get_mut(id) else { return Err(outcome) };
        if !entry.outcome.is_none() {
            return Ok(None);
        }
        entry.outcome = Come::Here(outcome);
        let waker = entry.waker.take();
        self.places.has_come(id);
        Ok(waker)
    }

    /// Gives a receive which has no outcome yet a short message: in the receive's place, if the
    /// receive has room for it. Returns the waker of the task that waits, if there is one.
    #[inline]
    pub fn put_short(
        &mut self,
        id: ReceiveId,
        (turn, envelope): (Turn, Envelope),
        short: &Short,
    ) -> Option<Waker> {
        let entry = self.get_mut(id)?;
        if short.len() > entry.room {
            let message = Arrived::short(short.to_bytes());
            return self.put(id, Ok(Met { turn, envelope, message })).unwrap_or_default();
        }
        entry.outcome = Come::Short(turn);
        // The entry stays until later receives are posted, and keeps no memory of the program.
        entry.target = None;
        let waker = entry.waker.take();
        self.places.put(id, envelope, short);
        self.short.push_back(id);
        waker
    }

    /// Takes the outcome of a receive, which is over by that, if the outcome has come and is not in
    /// the receive's place. Returns the room of the receive, too.
    pub fn take(&mut self, id: ReceiveId) -> Option<(Outcome, usize)> {
        if !matches!(self.get_mut(id)?.outcome, Come::Here(_)) {
            return None;
        }
        match self.remove(id) {
            Entry { outcome: Come::Here(outcome), room, .. } => Some((outcome, room)),
            _ => None,
        }
    }

    fn remove(&mut self, id: ReceiveId) -> Entry {
        let entry = self.entries.remove(id.place as usize);
        if self.entries.is_empty() && self.entries.capacity() > MOST_KEPT {
            self.entries = Slab::new();
        }
        entry
    }

    /// Takes a receive out that is dropped.
    pub fn leave(&mut self, id: ReceiveId) -> Option<Left> {
        self.get_mut(id)?;
        let Entry { outcome, waker, pull, target, .. } = self.remove(id);
        let outcome = match outcome {
            Come::Nothing => None,
            Come::Here(outcome) => Some(outcome),
            Come::Short(turn) => self.short_of(id, turn).map(Ok),
        };
        Some(Left { outcome, pull: pull.upgrade(), waker, target })
    }

    /// Returns the short message in the place of a receive.
    fn short_of(&self, id: ReceiveId, turn: Turn) -> Option<Met> {
        let seen = self.places.look(id, |held| held.to_bytes());
        let Seen::Short(envelope, body) = seen else { return None };
        Some(Met { turn, envelope, message: Arrived::short(body) })
    }

    /// Has a task woken when the outcome comes. Returns the waker of the task that has waited until
    /// now, to be dropped without the lock.
    ///
    /// # Errors
    /// Returns the waker, to be woken without the lock, if the outcome has come.
    pub fn wake_later(&mut self, id: ReceiveId, waker: Waker) -> Result<Option<Waker>, Waker> {
        match self.get_mut(id) {
            Some(entry) if entry.outcome.is_none() => Ok(entry.waker.replace(waker)),
            _ => Err(waker),
        }
    }

    /// Notes by which pull the message of a receive comes.
    pub fn is_pulled(&mut self, id: ReceiveId, by: &Arc<Pull>) {
        if let Some(entry) = self.get_mut(id) {
            entry.pull = Arc::downgrade(by);
        }
    }
}
