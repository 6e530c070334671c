//! The core of an endpoint: its state, with what programs do that needs no device.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;

use doorbell_verbs::floor::locked;

use super::arrived::{Content, Met, PullJob};
use super::due::Due;
use super::effects::Effects;
use super::lane::{Lane, ShortSend};
use super::places::{Held, Places, ReceiveId, Seen as Looked};
use super::receives::Left;
use super::state::{State, react};
use crate::matching::{Envelope, Pattern, Source};
use crate::tagged::error::ReceiveError;
use crate::tagged::pacing::{Offer, Posting, Seen};
use crate::tagged::pull::Target;

/// The core of an endpoint, which its peers, messages and receives keep. It keeps no device: an
/// endpoint that the program has dropped is closed.
#[derive(Debug)]
pub struct Core {
    state: Mutex<State>,
    /// The places of receives, which tell which have their outcomes.
    places: Arc<Places>,
    /// The lanes on which handlers have put something.
    pub due: Arc<Due<Lane>>,
    /// The endpoint, for what needs a device.
    pub home: Weak<dyn Home>,
}

/// An endpoint, as far as its core asks it for anything.
pub trait Home: Any + Debug + Send + Sync {
    /// Has a long body pulled.
    fn pulls(self: Arc<Self>, job: PullJob);

    /// Has the NIC take a turn, and handles what has come.
    fn poll(&self);
}

/// The outcome of a receive that has come.
#[derive(Debug)]
pub enum Outcome<B> {
    /// A short message that the receive has room for, and what was made of its body.
    Short(Envelope, B),
    /// A message, or why there is none, and how long a body the receive takes.
    Other(Box<(Result<Met, ReceiveError>, usize)>),
}

/// A receive that was posted.
#[derive(Debug)]
pub enum PostedReceive {
    /// The outcome is here already.
    Here(Box<Result<Met, ReceiveError>>),
    /// The outcome will come.
    Waits(ReceiveId),
}

impl Core {
    /// The core of an endpoint that gives each peer a window of so many bytes.
    pub fn new(window: usize, home: Weak<dyn Home>) -> Self {
        let due = Arc::<Due<Lane>>::default();
        let state = State::new(window, due.clone());
        Self { places: state.receives.places().clone(), state: Mutex::new(state), due, home }
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Has done what follows from an event, now that the state is not locked any more. Returns
    /// whether a task was woken, or begun.
    #[inline]
    pub fn finish(&self, mut effects: Effects) -> bool {
        for job in effects.take_pulls() {
            if let Some(home) = self.home.upgrade() {
                home.pulls(job);
            }
        }
        effects.finish()
    }

    /// Sends what handlers have put on lanes. Returns whether a task was begun.
    #[inline]
    pub fn send_due(&self) -> bool {
        self.due.has_any() && self.send_all_due()
    }

    #[cold]
    fn send_all_due(&self) -> bool {
        self.due.take().iter().filter(|lane| lane.flush()).count() > 0
    }

    /// Sends a short message at once, if nothing holds it up. Credits that have come back are taken
    /// in by whoever has the NIC take turns, so a sender that has no credit does that. Returns
    /// whether the message was sent.
    #[inline]
    pub fn send_short(&self, source: Source, bits: u64, body: &[u8]) -> bool {
        let sends = |state: &mut State| {
            let known = state.peers.get_mut(source);
            known.map_or(ShortSend::HeldUp, |known| known.try_send_short(bits, body))
        };
        let sent = sends(&mut self.lock());
        match sent {
            ShortSend::Sent => true,
            ShortSend::HeldUp => false,
            ShortSend::NoCredit => {
                self.home.upgrade().iter().for_each(|home| home.poll());
                sends(&mut self.lock()) == ShortSend::Sent
            }
        }
    }

    /// Posts a receive of messages of at most `room` bytes of a pattern, into memory of the program
    /// if it has given some.
    #[inline]
    pub fn receive(
        &self,
        pattern: Pattern,
        room: usize,
        target: Option<Arc<Target>>,
    ) -> PostedReceive {
        let mut effects = Effects::default();
        let mut state = self.lock();
        if let Some(why) = state.refuses(pattern) {
            return PostedReceive::Here(Err(why).into());
        }
        let id = state.receives.enter(room, target);
        let State { incoming, peers, .. } = &mut *state;
        let posting = incoming.post(pattern, id, &mut |what| react(peers, &mut effects, what));
        let posted = match posting {
            Posting::Waits(receive) => {
                state.receives.waits(id, receive);
                PostedReceive::Waits(id)
            }
            Posting::Met(_, mut met) if matches!(met.message.content, Content::Here(_)) => {
                state.receives.leave(id);
                let number = std::mem::take(&mut met.message.number);
                state.is_done(met.envelope.source, number, true, &mut effects);
                PostedReceive::Here(Ok(met).into())
            }
            Posting::Met(_, met) => {
                state.meets(id, met, &mut effects);
                PostedReceive::Waits(id)
            }
        };
        drop(state);
        self.finish(effects);
        posted
    }

    /// Returns whether the outcome of a receive has come. Sends what handlers have put on lanes.
    #[inline]
    pub fn has_come(&self, id: ReceiveId) -> bool {
        self.send_due();
        self.places.has(id)
    }

    /// Takes the outcome of a receive, if it has come. Of the body of a short message, `makes` makes
    /// what the receive is for.
    #[inline(always)]
    pub fn take<B>(&self, id: ReceiveId, makes: impl FnOnce(&Held<'_>) -> B) -> Option<Outcome<B>> {
        self.send_due();
        match self.places.look(id, makes) {
            Looked::Nothing => None,
            Looked::Short(envelope, body) => {
                self.places.is_taken(id);
                Some(Outcome::Short(envelope, body))
            }
            Looked::Elsewhere => {
                let (outcome, room) = self.lock().receives.take(id)?;
                Some(Outcome::Other(Box::new((outcome, room))))
            }
        }
    }

    /// Has a task woken when the outcome of a receive comes, or at once if it has come.
    pub fn wake_later(&self, id: ReceiveId, waker: &Waker) {
        let waker = waker.clone();
        let armed = self.lock().receives.wake_later(id, waker);
        if let Err(here) = armed {
            here.wake();
        }
    }

    /// Cancels a posted receive. Returns whether the receive still waited.
    pub fn cancel(&self, id: ReceiveId) -> bool {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let cancelled = state.cancels(id, &mut effects);
        if cancelled && let Ok(waker) = state.receives.put(id, Err(ReceiveError::Cancelled)) {
            effects.wake(waker);
        }
        drop(state);
        effects.finish();
        cancelled
    }

    /// Takes back a receive that is dropped, and whose outcome the program has not taken. Its
    /// message is left for another. Memory that the receive was to fill is not written any more.
    pub fn dropped(&self, id: ReceiveId) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let cancelled = state.cancels(id, &mut effects);
        let left = state.receives.leave(id);
        let Left { outcome, pull, waker, target } = left.unwrap_or_default();
        target.iter().for_each(|target| target.give_up());
        let met = match outcome {
            Some(outcome) => outcome.ok(),
            None => pull.and_then(|pull| pull.take_back()),
        };
        let (in_place, elsewhere) = match met.filter(|_| !cancelled) {
            Some(met) if is_in_place(&met) => (Some(met), None),
            met => (None, met),
        };
        elsewhere.into_iter().for_each(|met| state.put_back(met, &mut effects));
        drop(state);
        drop(waker);
        self.finish(effects);
        if let Some(target) = target {
            target.revoke();
            // Long bodies are not copied under the lock.
            in_place.into_iter().for_each(|met| self.put_back(out_of_place(met, &target)));
        }
    }

    /// Takes back a message that a receive has met and that no program has seen. Another receive
    /// takes it.
    pub fn put_back(&self, met: Met) {
        let mut effects = Effects::default();
        self.lock().put_back(met, &mut effects);
        self.finish(effects);
    }

    /// Tells the sender of a message that was too long for its receive, and that the program has
    /// taken as an error, that the message is done.
    pub fn truncated(&self, source: Source, number: u64) {
        let mut effects = Effects::default();
        self.lock().is_done(source, number, true, &mut effects);
        effects.finish();
    }

    /// Looks for a message that a receive would meet now: its match bits, length and sender.
    pub fn probe(&self, pattern: Pattern) -> Option<(u64, usize, Source)> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let seen = incoming.probe(pattern, &mut |what| react(peers, &mut effects, what));
        let found = seen.map(|seen| match seen {
            Seen::Here(envelope, arrived) => (envelope.bits, arrived.len, envelope.source),
            Seen::Held(Offer { envelope, len, .. }) => (envelope.bits, len, envelope.source),
        });
        drop(state);
        effects.finish();
        found
    }
}

/// Returns whether the body of a message is in the memory that its receive was to fill.
fn is_in_place(met: &Met) -> bool {
    matches!(met.message.content, Content::InPlace)
}

/// Returns a message that a dropped receive has got, for another receive: with a copy of the body
/// that is in the memory of the first.
fn out_of_place(mut met: Met, target: &Target) -> Met {
    met.message.content = Content::Here(target.to_bytes(met.message.len));
    met
}
