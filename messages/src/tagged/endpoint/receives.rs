//! Receives that the program has posted: the places of their outcomes, and the tasks that wait.

use std::sync::{Arc, Weak};
use std::task::Waker;

use slab::Slab;

use super::arrived::{Met, Pull};
use super::receive_id::{ReceiveId, Words};
use crate::tagged::error::ReceiveError;
use crate::tagged::pacing::Receive;

/// The outcome of a receive.
pub type Outcome = Result<Met, ReceiveError>;

/// The receives that were posted and whose outcomes the program has not taken. The memory of a
/// receive that is over serves the next.
#[derive(Debug, Default)]
pub struct Receives {
    entries: Slab<Entry>,
    generation: u32,
    words: Arc<Words>,
}

/// The most receives whose memory is kept when none is posted.
const MOST_KEPT: usize = 4096;

/// The remains of a receive that is dropped.
#[derive(Debug)]
pub struct Left {
    pub outcome: Option<Outcome>,
    /// The pull of the receive's message, if there is one.
    pub pull: Option<Arc<Pull>>,
    /// The waker of the task that has waited, to be dropped without the lock.
    pub waker: Option<Waker>,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    /// The longest body that the receive takes.
    room: usize,
    /// The receive among those that wait for messages, once it has waited.
    waits: Option<Receive>,
    outcome: Option<Outcome>,
    /// The waker of the task that sleeps until the outcome comes.
    waker: Option<Waker>,
    /// The pull of the receive's message, if it has met a long one.
    pull: Weak<Pull>,
}

impl Receives {
    /// Returns the words that tell which receives have their outcomes.
    pub fn words(&self) -> &Arc<Words> {
        &self.words
    }

    /// Enters a receive of at most `room` bytes.
    pub fn enter(&mut self, room: usize) -> ReceiveId {
        // Words begin as zero, which is no receive's generation.
        self.generation = self.generation.wrapping_add(1).max(1);
        let generation = self.generation;
        let (waits, outcome, waker, pull) = (None, None, None, Weak::new());
        let entry = Entry { generation, room, waits, outcome, waker, pull };
        let place = self.entries.insert(entry) as u32;
        self.words.reach(place);
        ReceiveId { place, generation }
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
        if entry.outcome.is_some() {
            return Ok(None);
        }
        entry.outcome = Some(outcome);
        let waker = entry.waker.take();
        self.words.has_come(id);
        Ok(waker)
    }

    /// Takes the outcome of a receive, which is over by that, if the outcome has come.
    #[inline]
    pub fn take(&mut self, id: ReceiveId) -> Option<Outcome> {
        let outcome = self.get_mut(id)?.outcome.take()?;
        self.remove(id);
        Some(outcome)
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
        let Entry { outcome, waker, pull, .. } = self.remove(id);
        Some(Left { outcome, pull: pull.upgrade(), waker })
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
