//! What the handles to an endpoint and its handlers share, and what programs do with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use doorbell_am as am;
use tokio::task::JoinSet;

use super::arrived::Sender;
use super::lane::Outbound;
use super::slots::{ReceiveSlot, SendSlot};
use super::state::{Awaited, State, Touched, react};
use crate::body::Body;
use crate::error::{SendError, peer_text};
use crate::limits::Limits;
use crate::matching::{Envelope, Pattern, Source};
use crate::pacing::{Posting, Receive};
use crate::pull::{PullService, Puller, Secret, lend};

/// What the handles to an endpoint and its handlers share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    pub(super) limits: Limits,
    /// The name by which others connect, as soon as the endpoint is open.
    name: OnceLock<String>,
    /// The number of the service to which peers connect for long messages.
    pub(super) service_number: u64,
    pub(super) service: Arc<PullService>,
    /// Tasks that pull long bodies, or connect for that.
    pub(super) tasks: Mutex<JoinSet<()>>,
    pub(super) malformed: AtomicU64,
    pub(super) puller: Puller,
    /// A number that peers of this machine find in this process's memory, if there may be any.
    pub(super) secret: Option<Secret>,
    pub(super) bundle: am::Bundle,
}

/// A send that was posted.
#[derive(Debug)]
pub struct Posted {
    /// The place of the send's outcome.
    pub slot: Arc<SendSlot>,
    /// The peer and the order of the message, if it is held.
    pub held: Option<(Source, u64)>,
}

impl Shared {
    pub fn new(limits: Limits, bundle: am::Bundle, service_number: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new(limits.window)),
            limits,
            name: OnceLock::new(),
            service_number,
            service: Arc::default(),
            tasks: Mutex::default(),
            malformed: AtomicU64::new(0),
            puller: Puller::new(bundle.nic().domain(), limits),
            secret: may_be_near(&bundle).then(Secret::new),
            bundle,
        })
    }

    /// Sets the name by which others connect.
    pub fn set_name(&self, name: String) {
        let _ = self.name.set(name);
    }

    /// Returns the name by which others connect. A peer that is quicker than the endpoint's opening
    /// is told none.
    pub fn name(&self) -> &str {
        self.name.get().map_or("", String::as_str)
    }

    /// Counts a message that breaks the rules.
    pub fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Posts a send.
    pub fn send(
        self: &Arc<Self>,
        source: Source,
        link: &am::Peer,
        (bits, body): (u64, Body),
        is_synchronous: bool,
    ) -> Result<Posted, SendError> {
        let len = body.len();
        let gone = || SendError::PeerGone { peer: peer_text(link.name()), len };
        let mut state = self.lock();
        let Some(known) = state.peers.get(&source) else {
            return Err(gone());
        };
        if len > known.eager {
            drop(state);
            return self.send_long(source, link, bits, body);
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
        Ok(Posted { slot, held: order.map(|order| (source, order)) })
    }

    /// Posts a send of a body that the receiver pulls.
    fn send_long(
        self: &Arc<Self>,
        source: Source,
        link: &am::Peer,
        bits: u64,
        body: Body,
    ) -> Result<Posted, SendError> {
        let len = body.len();
        let lent = lend(self.puller.domain(), body, self.secret.is_some());
        let (lending, description) = match lent {
            Ok(lent) => lent,
            Err(why) => {
                let peer = peer_text(link.name());
                return Err(SendError::NoRoom { peer, len, why: why.to_string() });
            }
        };
        let mut state = self.lock();
        let Some(known) = state.peers.get(&source) else {
            let peer = peer_text(link.name());
            return Err(SendError::PeerGone { peer, len });
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
        self.connect_for_pulls(pulls);
        Ok(Posted { slot, held: order.map(|order| (source, order)) })
    }

    /// Cancels a send whose message is held here. Returns whether it was.
    pub fn cancel_send(&self, (source, order): (Source, u64)) -> bool {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let Some(known) = state.peers.get_mut(&source) else { return false };
        let Some(held) = known.outgoing.cancel(order) else { return false };
        let forgotten = state.awaited.remove(&held.message.number);
        state.releases(source, &mut touched);
        drop(state);
        drop(forgotten);
        touched.iter().for_each(|lane| lane.flush());
        true
    }

    /// Posts a receive. Returns the place of its outcome, and the receive's name if it waits.
    pub fn receive(
        self: &Arc<Self>,
        pattern: Pattern,
        slot: ReceiveSlot,
    ) -> (Arc<ReceiveSlot>, Option<Receive>) {
        let (slot, mut touched) = (Arc::new(slot), Touched::new());
        let mut state = self.lock();
        if let Some(why) = state.refuses(pattern.source) {
            slot.outcome.fill(Err(why));
            return (slot, None);
        }
        let State { incoming, peers, .. } = &mut *state;
        let posting =
            incoming.post(pattern, slot.clone(), &mut |what| react(peers, &mut touched, what));
        let waits = match posting {
            Posting::Met(_, envelope, arrived) => {
                self.met(state, envelope.source, slot.clone(), arrived, &mut touched);
                None
            }
            Posting::Waits(receive) => {
                drop(state);
                Some(receive)
            }
        };
        touched.iter().for_each(|lane| lane.flush());
        (slot, waits)
    }

    /// Cancels a receive. Returns whether it waited still.
    pub fn cancel(&self, receive: Receive) -> bool {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let State { incoming, peers, .. } = &mut *state;
        let taken = incoming.cancel(receive, &mut |what| react(peers, &mut touched, what));
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
        taken.is_some()
    }

    /// Looks for a message that a receive would meet now: its envelope, length and sender.
    pub fn probe(&self, pattern: Pattern) -> Option<(Envelope, usize, Sender)> {
        let mut state = self.lock();
        let (envelope, arrived) = state.incoming.probe(pattern)?;
        Some((envelope, arrived.len, arrived.from.clone()))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a bundle's NIC reaches processes of this machine alone, by shared memory. Through
/// other devices messages go, wherever their receivers are.
fn may_be_near(bundle: &am::Bundle) -> bool {
    bundle.nic().capabilities().name == "shm"
}
