//! What the handles to an endpoint and its handlers share, and what programs do with it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use doorbell_am as am;
use doorbell_verbs::floor::Prober;
use tokio::task::JoinSet;

use super::arrived::PullJob;
use super::closing_state::Closing;
use super::core::{Core, Home};
use super::departures::Ticket;
use super::effects::Effects;
use super::frame::{Outbound, SendSlot, Waits};
use super::lane::Lane;
use super::state::{Awaited, Known, State};
use crate::matching::Source;
use crate::tagged::body::Body;
use crate::tagged::error::{SendError, Unsent};
use crate::tagged::limits::Limits;
use crate::tagged::pull::{PullService, Puller, Secret, lend};
use crate::tagged::wire::OVERHEAD;

/// The endpoint itself, which its handles and its handlers of Active Messages share.
#[derive(Debug)]
pub struct Shared {
    pub(super) core: Arc<Core>,
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
    /// The message waits on the lane, from where it leaves in its turn.
    Leaves { lane: Arc<Lane>, ticket: Ticket },
    /// The outcome comes to a slot, once the message has left by the lane. If the message is held,
    /// its peer and order are known.
    Waits { slot: Arc<SendSlot>, lane: Arc<Lane>, held: Option<(Source, u64)> },
}

impl Home for Shared {
    fn pulls(self: Arc<Self>, job: PullJob) {
        self.pull(job);
    }

    fn poll(&self) {
        self.bundle().poll(true);
    }
}

impl am::Runner for Shared {
    fn run(&self) -> bool {
        self.core.send_due()
    }
}

impl Shared {
    pub fn new(limits: Limits, rails: Vec<OwnRail>) -> Arc<Self> {
        let domains = rails.iter().map(|rail| rail.bundle.nic().domain()).collect();
        let secret = rails.iter().any(OwnRail::stays_here).then(Secret::new);
        Arc::new_cyclic(|shared: &Weak<Self>| Self {
            core: Arc::new(Core::new(limits.window, shared.clone())),
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

    /// Posts the send of a message to a peer that was not [sent at once](Core::send_short).
    pub fn send(
        self: &Arc<Self>,
        source: Source,
        (bits, body): (u64, Body),
        is_synchronous: bool,
    ) -> Result<Posted, SendError> {
        let len = body.len();
        let mut state = self.lock();
        let Some(known) = state.peers.get_mut(source) else {
            return Err(state.unsent(source, len));
        };
        if len > known.eager {
            drop(state);
            return self.send_long(source, bits, body);
        }
        let (lane, payload) = (known.lane.clone(), body.joined());
        if !is_synchronous && known.outgoing.has_room(OVERHEAD + len) {
            known.outgoing.sent(OVERHEAD + len);
            let waits = Waits::Ticket;
            let outbound = Outbound { len, long: false, payload, number: 0, waits };
            let ticket = lane.put_message(bits, outbound);
            drop(state);
            lane.flush();
            return Ok(Posted::Leaves { lane, ticket });
        }
        let slot = Arc::new(SendSlot::default());
        let (number, waits) = match is_synchronous {
            true => {
                let slot = slot.clone();
                let awaited = Awaited { to: source, slot, len, lending: None };
                (state.awaits(awaited), Waits::Nobody)
            }
            false => (0, Waits::Slot(slot.clone())),
        };
        let outbound = Outbound { len, long: false, payload, number, waits };
        let order = state.submit(source, bits, outbound);
        drop(state);
        lane.flush();
        Ok(Posted::Waits { slot, lane, held: order.map(|order| (source, order)) })
    }

    /// Posts a send of a body that the receiver pulls.
    fn send_long(
        self: &Arc<Self>,
        source: Source,
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
                let (peer, what) = (self.lock().peer_text(source), Unsent::Bytes(len));
                return Err(SendError::NoRoom { peer, what, why: why.to_string().into() });
            }
        };
        let mut state = self.lock();
        let Some(known) = state.peers.get(source) else {
            return Err(state.unsent(source, len));
        };
        let (lane, pulls) = (known.lane.clone(), known.pulls.clone());
        let slot = Arc::new(SendSlot::default());
        let lending = Some(lending);
        let number = state.awaits(Awaited { to: source, slot: slot.clone(), len, lending });
        let payload = description.into();
        let outbound = Outbound { len, long: true, payload, number, waits: Waits::Nobody };
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

    /// Returns the endpoint of a core, unless the program has dropped it.
    pub fn of(core: &Core) -> Option<Arc<Self>> {
        let home: Arc<dyn Any + Send + Sync> = core.home.upgrade()?;
        home.downcast().ok()
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.core.lock()
    }

    /// Has done what follows from an event, now that the state is not locked any more. Returns
    /// whether a task was woken, or begun.
    pub fn finish(&self, effects: Effects) -> bool {
        self.core.finish(effects)
    }
}

impl OwnRail {
    /// Returns whether the device reaches processes of this machine alone, by shared memory.
    /// Through other devices messages go, wherever their receivers are.
    pub(super) fn stays_here(&self) -> bool {
        self.bundle.nic().capabilities().name == "shm"
    }
}
