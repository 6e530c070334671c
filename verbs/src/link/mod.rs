//! The state of one connection, which a queue pair's program and its NIC share.
//!
//! This folder is told of each change by the layer that controls the NIC. It tells programs the
//! connection's state, why the connection ended, and the peer's address. It knows nothing of the
//! NIC.

mod private;
mod state;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use doorbell_core::cm::ConnectionId;
use doorbell_core::connect::Route;
use doorbell_core::encap::PathId;
use doorbell_core::nic::{self, Rights, SharedReceiveQueueId};
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::RnrRetryCount;

pub use private::Private;
pub use state::{ConnectionState, Ending};

use crate::sync::wakers::Wakers;
use crate::sync::{AtomicBool, Mutex, Ordering, fence, locked};

/// The route to a peer's host, which many connections share.
pub(crate) type Way = Arc<Route>;

/// The connection of one queue pair, as its program and its NIC share it.
pub(crate) struct Link {
    pub qpn: Qpn,
    pub terms: Terms,
    /// Whether the connection is unreliable: without acknowledgements.
    pub unreliable: bool,
    state: Mutex<ConnectionState>,
    /// Whether the queue pair takes no more receives from its shared receive queue.
    had_last: AtomicBool,
    /// Whether the program has asked for a probe of the peer that has not begun yet.
    asks_probe: AtomicBool,
    /// The tasks that wait for the state to change.
    watchers: Wakers,
    nic_side: Mutex<NicSide>,
}

/// The terms of a connection that this side's configuration sets.
pub(crate) struct Terms {
    pub rights: Rights,
    /// Whether receives come from a shared receive queue: then the peer is given no end-to-end
    /// credits.
    pub shares_receives: bool,
    /// The most reads and atomic operations under way at a time, each way.
    pub reads: u8,
    /// How often the peer sends a message again for which no receive is posted here.
    pub rnr_retries: RnrRetryCount,
}

impl Terms {
    /// The terms of a queue pair without a connection.
    pub const NONE: Self = Self {
        rights: Rights::NONE,
        shares_receives: false,
        reads: 0,
        rnr_retries: RnrRetryCount::INFINITE,
    };

    /// Makes the terms from the fields that both kinds of configuration have.
    pub fn new(
        rights: Rights,
        shared_receives: Option<SharedReceiveQueueId>,
        reads: u8,
        rnr_retries: RnrRetryCount,
    ) -> Self {
        Self { rights, shares_receives: shared_receives.is_some(), reads, rnr_retries }
    }
}

/// The part of a connection's state that only its NIC needs.
#[derive(Default)]
pub(crate) struct NicSide {
    /// The number of the connection at the connection manager, while that knows the connection.
    pub id: Option<ConnectionId>,
    /// The route to the peer, and the number of the path. On a device with links, the number is the
    /// device's own.
    pub path: Option<(Way, PathId)>,
    /// The peer's queue pair, for tracing.
    pub peer: Option<Qpn>,
}

/// Shows the state unless another thread is changing it, and never waits for that thread.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Link");
        shown.field("qpn", &self.qpn);
        if let Ok(state) = self.state.try_lock() {
            shown.field("state", &*state);
        }
        shown.finish_non_exhaustive()
    }
}

impl Link {
    pub fn new(qpn: Qpn, terms: Terms) -> Self {
        Self {
            qpn,
            terms,
            unreliable: false,
            state: Mutex::new(ConnectionState::Unconnected),
            had_last: AtomicBool::new(false),
            asks_probe: AtomicBool::new(false),
            watchers: Wakers::default(),
            nic_side: Mutex::new(NicSide::default()),
        }
    }

    pub fn state(&self) -> ConnectionState {
        locked(&self.state).clone()
    }

    pub fn set_state(&self, state: ConnectionState) {
        *locked(&self.state) = state;
        fence(Ordering::SeqCst);
        self.watchers.wake_all();
    }

    /// Ends the connection, and returns whether it had not ended before. The first reason stays,
    /// with one exception: `Ending::Left` is replaced once the peer's answer is known.
    pub fn end(&self, ending: Ending) -> bool {
        let (first, known) = match &*locked(&self.state) {
            ConnectionState::Ended(Ending::PeerLeft { .. } | Ending::Broken(_)) => (false, true),
            ConnectionState::Ended(_) => (false, false),
            _ => (true, false),
        };
        if !known {
            self.set_state(ConnectionState::Ended(ending));
        }
        first
    }

    /// Notes that the queue pair takes no more receives from its shared receive queue, and returns
    /// whether that is new.
    pub fn now_had_last_receive(&self) -> bool {
        !self.had_last.swap(true, Ordering::AcqRel)
    }

    pub fn had_last_receive(&self) -> bool {
        self.had_last.load(Ordering::Acquire)
    }

    /// Notes that the program asks for a probe of the peer, and returns whether no other probe
    /// waits to begin.
    pub fn ask_probe(&self) -> bool {
        !self.asks_probe.swap(true, Ordering::AcqRel)
    }

    /// Notes that the probe begins: a later call of `ask_probe` asks for another one.
    pub fn probe_begins(&self) {
        self.asks_probe.store(false, Ordering::Release);
    }

    /// Waits until the connection has ended.
    pub async fn ended(&self) -> Ending {
        let ended = || match &*locked(&self.state) {
            ConnectionState::Ended(ending) => Some(ending.clone()),
            _ => None,
        };
        self.watchers.until(ended).await
    }

    /// Returns the address and port of the peer's NIC, or nothing on a device without such
    /// addresses.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        let way = self.nic_side(|side| side.path.as_ref().map(|(way, _)| way.clone()))?;
        let nic::Way::Network(outer) = way.way() else { return None };
        let (_, peer) = outer.hosts();
        let address = match peer.gid.to_ipv4() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(peer.gid.into()),
        };
        Some(SocketAddr::new(address, peer.port.0))
    }

    pub fn nic_side<R>(&self, does: impl FnOnce(&mut NicSide) -> R) -> R {
        does(&mut locked(&self.nic_side))
    }
}
