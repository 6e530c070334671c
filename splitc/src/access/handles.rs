//! Handles to operations that are under way.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use doorbell_am::costs::{Cost, span};

use crate::element::Element;
use crate::error::{Error, ErrorKind};
use crate::landing::{Slot, Tally, Values};
use crate::world::{Core, Waits, World};

/// A handle to a value that is being fetched: see [`Place::get`](crate::Place::get).
///
/// The value has arrived when [`done`](Self::done) is, or after [`World::sync`]. Dropping the
/// handle gives the value up.
#[must_use = "the value is lost without the handle"]
pub struct Get<T: Element> {
    state: State<T>,
}

enum State<T: Element> {
    Here(T),
    Coming { world: World, slot: u32, of: PhantomData<T> },
    InPieces(GetAll<T>),
}

impl<T: Element> Get<T> {
    pub(crate) fn here(value: T) -> Self {
        Self { state: State::Here(value) }
    }

    pub(crate) fn coming(world: &World, slot: u32) -> Self {
        Self { state: State::Coming { world: world.clone(), slot, of: PhantomData } }
    }

    pub(crate) fn in_pieces(values: GetAll<T>) -> Self {
        Self { state: State::InPieces(values) }
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// When the process whose memory has the value has gone.
    pub async fn done(self) -> Result<T, Error> {
        if !self.is_done() {
            let world = match &self.state {
                State::Coming { world, .. } | State::InPieces(GetAll { world, .. }) => world,
                State::Here(_) => unreachable!("it is done"),
            };
            world.0.flush_until(|_| Waits::Operations, |_| self.is_done().then_some(())).await?;
        }
        self.value()
    }

    /// Whether the value has arrived.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Here(_) => true,
            State::Coming { world, slot, .. } => {
                !matches!(world.0.slots.borrow()[*slot as usize], Slot::Waits)
            }
            State::InPieces(values) => values.is_done(),
        }
    }

    /// The value, without waiting: after a [`World::sync`] it has arrived.
    ///
    /// # Errors
    /// When the value has not arrived yet, or the process whose memory has it has gone.
    pub fn value(self) -> Result<T, Error> {
        let _semantics = span(Cost::Semantics);
        match &self.state {
            State::Here(value) => Ok(*value),
            State::Coming { world, slot, .. } => {
                let slots = world.0.slots.borrow();
                let slot = &slots[*slot as usize];
                match slot {
                    Slot::Failed(why) => Err(why.clone()),
                    _ => slot.value().ok_or_else(|| ErrorKind::NotSynced.into()),
                }
            }
            State::InPieces(values) => Ok(values.taken()?[0]),
        }
    }
}

impl<T: Element> Drop for Get<T> {
    fn drop(&mut self) {
        if let State::Coming { world, slot, .. } = &self.state {
            let mut slots = world.0.slots.borrow_mut();
            let there = &mut slots[*slot as usize];
            match there {
                Slot::Waits => *there = Slot::Abandoned,
                _ => drop(slots.remove(*slot as usize)),
            }
        }
    }
}

impl<T: Element> fmt::Debug for Get<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("done", &self.is_done()).finish()
    }
}

/// A handle to values that are being fetched: see [`Span::get`](crate::Span::get).
#[must_use = "the values are lost without the handle"]
pub struct GetAll<T: Element> {
    pub(crate) world: World,
    pub(crate) values: Rc<RefCell<Values<T>>>,
}

impl<T: Element> GetAll<T> {
    /// Waits for all the values, and returns them in order.
    ///
    /// # Errors
    /// When a process whose memory has values has gone.
    pub async fn done(self) -> Result<Vec<T>, Error> {
        if !self.is_done() {
            let core = &*self.world.0;
            core.flush_until(|_| Waits::Operations, |_| self.is_done().then_some(())).await?;
        }
        self.values()
    }

    /// Whether every value has arrived.
    pub fn is_done(&self) -> bool {
        self.values.borrow().missing == 0
    }

    /// The values, without waiting: after a [`World::sync`] they have arrived.
    ///
    /// # Errors
    /// When a value has not arrived yet, or a process whose memory has values has gone.
    pub fn values(self) -> Result<Vec<T>, Error> {
        self.taken()
    }

    fn taken(&self) -> Result<Vec<T>, Error> {
        let mut row = self.values.borrow_mut();
        if row.missing > 0 {
            return Err(ErrorKind::NotSynced.into());
        }
        match row.failure.take() {
            Some(why) => Err(why),
            None => Ok(std::mem::take(&mut row.values)),
        }
    }
}

impl<T: Element> fmt::Debug for GetAll<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetAll").field("done", &self.is_done()).finish()
    }
}

/// A handle to data that is on its way to its target: see [`Place::put`](crate::Place::put).
///
/// The target has the data when [`done`](Self::done) is, or after [`World::sync`]. The handle may
/// be dropped, and the data arrives all the same.
#[derive(Clone)]
pub struct Done {
    pub(crate) world: World,
    pub(crate) by: By,
}

/// The condition under which data has arrived at its target.
#[derive(Clone)]
pub(crate) enum By {
    /// The data has arrived already.
    Now,
    /// The data has arrived when that message of operations to that process, by its number, is
    /// answered.
    Message { rank: usize, number: u64 },
    /// The data has arrived when all requests of a tally are done.
    Tally(Rc<Tally>),
    /// The data has arrived when all these conditions are met.
    All(Rc<[By]>),
}

impl By {
    fn is_done(&self, core: &Core) -> bool {
        match self {
            Self::Now => true,
            Self::Message { rank, number } => {
                let far = core.peers[*rank].far.as_ref();
                far.is_none_or(|far| far.answered.get() > *number)
                    || core.departures.has_gone(*rank)
            }
            Self::Tally(tally) => tally.missing.get() == 0,
            Self::All(all) => all.iter().all(|by| by.is_done(core)),
        }
    }

    fn outcome(&self, core: &Core) -> Result<(), Error> {
        match self {
            Self::Message { rank, .. } if core.departures.has_gone(*rank) => {
                Err(core.departures.of(*rank).into())
            }
            Self::Now | Self::Message { .. } => Ok(()),
            Self::Tally(tally) => tally.failure.borrow().clone().map_or(Ok(()), Err),
            Self::All(all) => all.iter().try_for_each(|by| by.outcome(core)),
        }
    }
}

impl Done {
    /// Waits until the target has the data.
    ///
    /// # Errors
    /// When the process to whose memory the data goes has gone.
    pub async fn done(self) -> Result<(), Error> {
        if !self.is_done() {
            let core = &*self.world.0;
            core.flush_until(|_| Waits::Operations, |_| self.is_done().then_some(())).await?;
        }
        self.by.outcome(&self.world.0)
    }

    /// Whether the target has the data.
    pub fn is_done(&self) -> bool {
        self.by.is_done(&self.world.0)
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done").field("done", &self.is_done()).finish()
    }
}
