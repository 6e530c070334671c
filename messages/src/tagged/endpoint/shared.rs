//! What the handles to an endpoint and its handlers share, and what programs do with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use doorbell_am as am;
use doorbell_verbs::floor::Prober;
use tokio::task::JoinSet;

use super::arrived::{Met, ReceiveSlot, Sender};
use super::closing_state::Closing;
use super::effects::Effects;
use super::frame::{Outbound, SendSlot};
use super::lane::Lane;
use super::state::{Awaited, Known, State, react};
use crate::matching::{Pattern, Source};
use crate::tagged::body::Body;
use crate::tagged::error::{SendError, Unsent, peer_text};
use crate::tagged::limits::Limits;
use crate::tagged::pacing::{Offer, Posting, Receive, Seen};
use crate::tagged::pull::{PullService, Puller, Secret, lend};
use doorbell_verbs::floor::locked;

/// The endpoint itself, which its handles and its handlers of Active Messages share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
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

impl Shared {
    pub fn new(limits: Limits, rails: Vec<OwnRail>) -> Arc<Self> {
        let domains = rails.iter().map(|rail| rail.bundle.nic().domain()).collect();
        let secret = rails.iter().any(OwnRail::stays_here).then(Secret::new);
        Arc::new(Self {
            state: Mutex::new(State::new(limits.window)),
            limits,
            rails,
            service: Arc::default(),
            tasks: Mutex::default(),
            closing: Closing::default(),
            prober: Prober::default(),
            malformed: AtomicU64::new(0),
            puller: Puller::new(domains, limits),
            secret,
        })
    }

    /// Returns the bundle of the first device. The bundles of all are served together.
    pub fn bundle(&self) -> &am::Bundle {
        &self.rails[0].bundle
    }

    /// Counts a message that breaks the rules, and so wakes no task.
    pub fn malformed(&self) -> bool {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Posts the send of a message to a peer.
    pub fn send(
        self: &Arc<Self>,
        source: Source,
        name: Option<&str>,
        (bits, body): (u64, Body),
        is_synchronous: bool,
    ) -> Result<Posted, SendError> {
        let len = body.len();
        let mut state = self.lock();
        let Some(known) = state.peers.get_mut(&source) else {
            return Err(state.unsent(source, name, len));
        };
        // Fast path: a short message that neither the window nor credits hold up needs no slot.
        if !is_synchronous
            && let [body] = body.pieces()
            && known.try_send_short(bits, body)
        {
            return Ok(Posted::Left);
        }
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
        let (devices, is_here) = self.lock().peers.get(&source).map_or((1, false), known);
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
        let Some(known) = state.peers.get(&source) else {
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
        let Some(known) = state.peers.get_mut(&source) else { return false };
        let Some(held) = known.outgoing.cancel(order) else { return false };
        let forgotten = state.awaited.remove(&held.number);
        state.releases(source, &mut effects);
        drop(state);
        drop(forgotten);
        effects.finish();
        self.closing.wake();
        true
    }

    /// Posts a receive of messages of a pattern. Returns the place of its outcome, and the
    /// receive's name if it waits.
    pub fn receive(
        self: &Arc<Self>,
        pattern: Pattern,
        slot: ReceiveSlot,
    ) -> (Arc<ReceiveSlot>, Option<Receive>) {
        let (slot, mut effects) = (Arc::new(slot), Effects::default());
        let mut state = self.lock();
        if let Some(why) = state.refuses(pattern) {
            slot.outcome.fill(Err(why));
            return (slot, None);
        }
        let State { incoming, peers, .. } = &mut *state;
        let posting =
            incoming.post(pattern, slot.clone(), &mut |what| react(peers, &mut effects, what));
        let waits = match posting {
            Posting::Met(_, met) => {
                state.meets(slot.clone(), met, &mut effects);
                None
            }
            Posting::Waits(receive) => Some(receive),
        };
        drop(state);
        self.finish(effects);
        (slot, waits)
    }

    /// Cancels a posted receive. Returns whether the receive still waited.
    pub fn cancel(&self, receive: Receive) -> bool {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let taken = incoming.cancel(receive, &mut |what| react(peers, &mut effects, what));
        drop(state);
        effects.finish();
        taken.is_some()
    }

    /// Takes back a receive that is dropped, and whose outcome the program has not taken. Its
    /// message is left for another.
    pub fn dropped(self: &Arc<Self>, posted: Option<Receive>, slot: &ReceiveSlot) {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let mut reacts = |what| react(peers, &mut effects, what);
        let cancelled = posted.and_then(|receive| incoming.cancel(receive, &mut reacts));
        if cancelled.is_none() {
            let met = match slot.outcome.leave() {
                Some(outcome) => outcome.ok(),
                None => slot.take_back(),
            };
            met.into_iter().for_each(|met| state.put_back(met, &mut effects));
        }
        drop(state);
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
    pub fn probe(&self, pattern: Pattern) -> Option<(u64, usize, Sender)> {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let seen = incoming.probe(pattern, &mut |what| react(peers, &mut effects, what));
        let found = seen.and_then(|seen| match seen {
            Seen::Here(envelope, arrived) => {
                Some((envelope.bits, arrived.len, arrived.from.clone()))
            }
            Seen::Held(Offer { envelope, len, .. }) => {
                let source = envelope.source;
                let name = peers.get(&source)?.name.clone();
                Some((envelope.bits, len, Sender { source, name }))
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
