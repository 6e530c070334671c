//! What the handles to an endpoint and its handlers share, and what programs do with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;

use doorbell_am as am;
use doorbell_verbs::floor::Prober;
use tokio::task::JoinSet;

use super::arrived::{Content, Home, Met, Sender};
use super::closing_state::Closing;
use super::due::Due;
use super::effects::Effects;
use super::frame::{Outbound, SendSlot};
use super::lane::{Lane, ShortSend};
use super::receive_id::{ReceiveId, Words};
use super::receives::Left;
use super::state::{Awaited, Known, State, react};
use crate::matching::{Pattern, Source};
use crate::tagged::body::Body;
use crate::tagged::error::{ReceiveError, SendError, Unsent, peer_text};
use crate::tagged::limits::Limits;
use crate::tagged::pacing::{Offer, Posting, Seen};
use crate::tagged::pull::{PullService, Puller, Secret, lend};
use doorbell_verbs::floor::locked;

/// The endpoint itself, which its handles and its handlers of Active Messages share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// The words that tell which receives have their outcomes.
    words: Arc<Words>,
    /// The lanes on which handlers have put something.
    pub(super) due: Arc<Due<Lane>>,
    pub(super) limits: Limits,
    /// The devices of the endpoint.
    pub(super) rails: Vec<OwnRail>,
    pub(super) service: Arc<PullService>,
    /// Tasks that pull long bodies, or connect for that.
    pub(super) tasks: Mutex<JoinSet<()>>,
    /// The tasks that close the endpoint, and the peers that were lost before.
    pub(super) closing: Closing,
    /// The task that asks peers for signs of life.
    pub(super) prober: Prober,
    pub(super) malformed: AtomicU64,
    pub(super) puller: Puller,
    /// A number that peers of this machine find in this process's memory, if there may be any.
    pub(super) secret: Option<Secret>,
}

/// A device of an endpoint.
#[derive(Debug)]
pub struct OwnRail {
    pub bundle: am::Bundle,
    /// The number of the service to which peers connect for long messages.
    pub service: u64,
    /// The name by which others connect, as soon as the endpoint is open.
    pub name: OnceLock<String>,
}

/// A send that was posted.
#[derive(Debug)]
pub enum Posted {
    /// The message has left, and nobody need wait.
    Left,
    /// The outcome comes to a slot, once the message has left by the lane. If the message is held,
    /// its peer and order are known.
    Waits { slot: Arc<SendSlot>, lane: Arc<Lane>, held: Option<(Source, u64)> },
}

impl Home for Shared {}

impl am::Runner for Shared {
    fn run(&self) -> bool {
        self.send_due()
    }
}

/// A receive that was posted.
#[derive(Debug)]
pub enum PostedReceive {
    /// The outcome is here already.
    Here(Result<Met, ReceiveError>),
    /// The outcome will come.
    Waits(ReceiveId),
}

impl Shared {
    pub fn new(limits: Limits, rails: Vec<OwnRail>) -> Arc<Self> {
        let domains = rails.iter().map(|rail| rail.bundle.nic().domain()).collect();
        let secret = rails.iter().any(OwnRail::stays_here).then(Secret::new);
        Arc::new_cyclic(|shared: &Weak<Self>| {
            let due = Arc::<Due<Lane>>::default();
            let state = State::new(limits.window, shared.clone(), due.clone());
            Self {
                words: state.receives.words().clone(),
                due,
                state: Mutex::new(state),
                limits,
                rails,
                service: Arc::default(),
                tasks: Mutex::default(),
                closing: Closing::default(),
                prober: Prober::default(),
                malformed: AtomicU64::new(0),
                puller: Puller::new(domains, limits),
                secret,
            }
        })
    }

    /// Returns the bundle of the first device. The bundles of all are served together.
    pub fn bundle(&self) -> &am::Bundle {
        &self.rails[0].bundle
    }

    /// Sends what handlers have put on lanes. Returns whether a task was begun.
    #[inline]
    pub fn send_due(&self) -> bool {
        self.due.has_any() && self.send_all_due()
    }

    #[cold]
    fn send_all_due(&self) -> bool {
        self.due.take().iter().fold(false, |woke, lane| lane.flush() || woke)
    }

    /// Counts a message that breaks the rules, and so wakes no task.
    pub fn malformed(&self) -> bool {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Posts the send of a message to a peer.
    pub fn send(
        self: &Arc<Self>,
        to: &Sender,
        (bits, body): (u64, Body),
        is_synchronous: bool,
    ) -> Result<Posted, SendError> {
        let (source, name, len) = (to.source, to.name.as_deref(), body.len());
        // Fast path: a short message that neither the window nor credits hold up needs no slot.
        if !is_synchronous
            && let [body] = body.pieces()
            && self.send_short(source, bits, body)
        {
            return Ok(Posted::Left);
        }
        let mut state = self.lock();
        let Some(known) = state.peers.get_mut(source) else {
            return Err(state.unsent(source, name, len));
        };
        if len > known.eager {
            drop(state);
            return self.send_long(source, name, bits, body);
        }
        let lane = known.lane.clone();
        let slot = Arc::new(SendSlot::default());
        let (number, slot_of_leaving) = match is_synchronous {
            true => {
                let slot = slot.clone();
                (state.awaits(Awaited { to: source, slot, len, lending: None }), None)
            }
            false => (0, Some(slot.clone())),
        };
        let payload = body.joined();
        let outbound = Outbound { len, long: false, payload, number, slot: slot_of_leaving };
        let order = state.submit(source, bits, outbound);
        drop(state);
        lane.flush();
        Ok(Posted::Waits { slot, lane, held: order.map(|order| (source, order)) })
    }

    /// Sends a short message at once, if nothing holds it up. Credits that have come back are taken
    /// in by whoever has the NIC take turns, so a sender that has no credit does that. Returns
    /// whether the message was sent.
    #[inline]
    fn send_short(&self, source: Source, bits: u64, body: &[u8]) -> bool {
        let sends = |state: &mut State| {
            let known = state.peers.get_mut(source);
            known.map_or(ShortSend::HeldUp, |known| known.try_send_short(bits, body))
        };
        let sent = sends(&mut self.lock());
        match sent {
            ShortSend::Sent => true,
            ShortSend::HeldUp => false,
            ShortSend::NoCredit => {
                self.bundle().poll(true);
                sends(&mut self.lock()) == ShortSend::Sent
            }
        }
    }

    /// Posts a send of a body that the receiver pulls.
    fn send_long(
        self: &Arc<Self>,
        source: Source,
        name: Option<&str>,
        bits: u64,
        body: Body,
    ) -> Result<Posted, SendError> {
        let len = body.len();
        let known = |known: &Known| (known.pulls.len().max(1), known.is_here);
        let (devices, is_here) = self.lock().peers.get(source).map_or((1, false), known);
        let domains = &self.puller.domains()[..devices];
        let lent = lend(domains, body, is_here);
        let (lending, description) = match lent {
            Ok(lent) => lent,
            Err(why) => {
                let (peer, what) = (peer_text(name), Unsent::Bytes(len));
                return Err(SendError::NoRoom { peer, what, why: why.to_string().into() });
            }
        };
        let mut state = self.lock();
        let Some(known) = state.peers.get(source) else {
            return Err(state.unsent(source, name, len));
        };
        let (lane, pulls) = (known.lane.clone(), known.pulls.clone());
        let slot = Arc::new(SendSlot::default());
        let lending = Some(lending);
        let number = state.awaits(Awaited { to: source, slot: slot.clone(), len, lending });
        let payload = description.into();
        let outbound = Outbound { len, long: true, payload, number, slot: None };
        let order = state.submit(source, bits, outbound);
        drop(state);
        lane.flush();
        self.connect_for_pulls(&pulls);
        Ok(Posted::Waits { slot, lane, held: order.map(|order| (source, order)) })
    }

    /// Cancels a send whose message is held here. Returns whether it was.
    pub fn cancel_send(&self, (source, order): (Source, u64)) -> bool {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let Some(known) = state.peers.get_mut(source) else { return false };
        let Some(held) = known.outgoing.cancel(order) else { return false };
        let forgotten = state.awaited.remove(&held.number);
        state.releases(source, &mut effects);
        drop(state);
        drop(forgotten);
        effects.finish();
        self.closing.wake();
        true
    }

    /// Posts a receive of messages of at most `room` bytes of a pattern.
    pub fn receive(self: &Arc<Self>, pattern: Pattern, room: usize) -> PostedReceive {
        let mut effects = Effects::default();
        let mut state = self.lock();
        if let Some(why) = state.refuses(pattern) {
            return PostedReceive::Here(Err(why));
        }
        let id = state.receives.enter(room);
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
                PostedReceive::Here(Ok(met))
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

    /// Returns whether the outcome of a receive has come.
    #[inline]
    pub fn has_come(&self, id: ReceiveId) -> bool {
        self.words.is_here(id)
    }

    /// Takes the outcome of a receive, if it has come.
    #[inline]
    pub fn take(&self, id: ReceiveId) -> Option<Result<Met, ReceiveError>> {
        self.send_due();
        if self.has_come(id) { self.lock().receives.take(id) } else { None }
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
        let State { incoming, peers, receives, .. } = &mut *state;
        let mut reacts = |what| react(peers, &mut effects, what);
        let receive = receives.waits_as(id);
        let taken = receive.and_then(|receive| incoming.cancel(receive, &mut reacts));
        if taken.is_some()
            && let Ok(waker) = receives.put(id, Err(ReceiveError::Cancelled))
        {
            effects.wake(waker);
        }
        drop(state);
        effects.finish();
        taken.is_some()
    }

    /// Takes back a receive that is dropped, and whose outcome the program has not taken. Its
    /// message is left for another.
    pub fn dropped(self: &Arc<Self>, id: ReceiveId) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, receives, .. } = &mut *state;
        let mut reacts = |what| react(peers, &mut effects, what);
        let receive = receives.waits_as(id);
        let cancelled = receive.and_then(|receive| incoming.cancel(receive, &mut reacts));
        let left = state.receives.leave(id);
        let mut waker = None;
        if let Some(Left { outcome, pull, waker: waits }) = left {
            waker = waits;
            let met = match outcome {
                Some(outcome) => outcome.ok(),
                None => pull.and_then(|pull| pull.take_back()),
            };
            if cancelled.is_none() {
                met.into_iter().for_each(|met| state.put_back(met, &mut effects));
            }
        }
        drop(state);
        drop(waker);
        self.finish(effects);
    }

    /// Takes back a message that a receive has met and that no program has seen. Another receive
    /// takes it.
    pub fn put_back(self: &Arc<Self>, met: Met) {
        let mut effects = Effects::default();
        self.lock().put_back(met, &mut effects);
        self.finish(effects);
    }

    /// Tells the sender of a message that was too long for its receive, and that the program has
    /// taken as an error, that the message is done.
    pub fn truncated(&self, met: &Met) {
        let mut effects = Effects::default();
        self.lock().is_done(met.envelope.source, met.message.number, true, &mut effects);
        effects.finish();
    }

    /// Looks for a message that a receive would meet now: its match bits, length and sender.
    pub fn probe(&self, pattern: Pattern) -> Option<(u64, usize, Arc<Sender>)> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let seen = incoming.probe(pattern, &mut |what| react(peers, &mut effects, what));
        let found = seen.and_then(|seen| match seen {
            Seen::Here(envelope, arrived) => {
                Some((envelope.bits, arrived.len, arrived.from.clone()))
            }
            Seen::Held(Offer { envelope, len, .. }) => {
                let sender = peers.get(envelope.source)?.sender.clone();
                Some((envelope.bits, len, sender))
            }
        });
        drop(state);
        effects.finish();
        found
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl OwnRail {
    /// Returns whether the device reaches processes of this machine alone, by shared memory.
    /// Through other devices messages go, wherever their receivers are.
    pub(super) fn stays_here(&self) -> bool {
        self.bundle.nic().capabilities().name == "shm"
    }
}
