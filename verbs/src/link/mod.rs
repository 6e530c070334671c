//! What a queue pair of either kind knows of its connection.

mod private;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use doorbell_core::cm::{ConnectionId, Why};
use doorbell_core::encap::PathId;
use doorbell_core::nic::{self, Cause, Rights, SharedReceiveQueueId};
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::RnrRetryCount;

pub use private::Private;

use crate::error::ConnectError;
use crate::progress::Way;
use crate::sync::{AtomicBool, Mutex, Ordering, fence, locked};
use crate::wakers::Wakers;

/// Where a connection stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stand {
    /// It was not asked for yet.
    Unconnected,
    /// It is being made.
    Connecting,
    /// It stands.
    Connected,
    /// It is over, and everything posted is flushed.
    Ended(Ending),
}

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ending {
    /// This side ended it.
    #[error("this side ended the connection")]
    Left {
        /// What the peer said to that.
        private: Private,
    },
    /// The peer ended it.
    #[error("the peer ended the connection")]
    PeerLeft {
        /// What it said.
        private: Private,
    },
    /// A request could not be carried out, or the peer is not there any more.
    #[error("{0}")]
    Broken(Cause),
}

impl Ending {
    /// Of a connection that stood.
    pub(crate) fn of(why: Why) -> Self {
        match why {
            Why::PeerLeft { private } | Why::Refused { private, .. } => {
                Self::PeerLeft { private: private.into() }
            }
            Why::Agreed { private } => Self::Left { private: private.into() },
            // Of one that does not stand yet, whoever waits is told more.
            Why::TimedOut { .. } | Why::Crowded | Why::Stale => {
                Self::Left { private: Private::default() }
            }
        }
    }
}

/// A queue pair's connection, as its program and its NIC know it.
pub(crate) struct Link {
    pub qpn: Qpn,
    pub terms: Terms,
    /// Whether nobody answers.
    pub unreliable: bool,
    stand: Mutex<Stand>,
    /// Whether it takes no more receives from the queue that it shares.
    had_last: AtomicBool,
    /// Whether a probe of the peer was asked for, and has not begun yet.
    asks_probe: AtomicBool,
    /// Who waits for that to change.
    watchers: Wakers,
    ways: Mutex<Ways>,
}

/// What this side's configuration says of a connection.
pub(crate) struct Terms {
    pub rights: Rights,
    /// Whether receives come from a shared queue, and so are not counted to the peer.
    pub shares_receives: bool,
    /// The most reads and atomic operations at a time, each way.
    pub reads: u8,
    /// How often the peer is to send again what finds no receive.
    pub rnr_retries: RnrRetryCount,
}

impl Terms {
    /// Those of what has no connection.
    pub const NONE: Self = Self {
        rights: Rights::NONE,
        shares_receives: false,
        reads: 0,
        rnr_retries: RnrRetryCount::INFINITE,
    };

    /// As the fields of either configuration say.
    pub fn new(
        rights: Rights,
        shared_receives: Option<SharedReceiveQueueId>,
        reads: u8,
        rnr_retries: RnrRetryCount,
    ) -> Self {
        Self { rights, shares_receives: shared_receives.is_some(), reads, rnr_retries }
    }
}

/// What of a connection only its NIC needs.
#[derive(Default)]
pub(crate) struct Ways {
    pub id: Option<ConnectionId>,
    /// Where it leads, and its path's number: that of a link is the device's.
    pub path: Option<(Way, PathId)>,
    /// The peer's queue pair, for who reads what is traced.
    pub peer: Option<Qpn>,
}

/// Without waiting for whoever is just changing where it stands.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Link");
        shown.field("qpn", &self.qpn);
        if let Ok(stand) = self.stand.try_lock() {
            shown.field("stand", &*stand);
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
            stand: Mutex::new(Stand::Unconnected),
            had_last: AtomicBool::new(false),
            asks_probe: AtomicBool::new(false),
            watchers: Wakers::default(),
            ways: Mutex::new(Ways::default()),
        }
    }

    /// Whether its connection can be made by the connection manager.
    pub fn makes_in_band(&self) -> Result<(), ConnectError> {
        match self.unreliable {
            true => Err(ConnectError::Unreliable(self.qpn)),
            false => Ok(()),
        }
    }

    pub fn stand(&self) -> Stand {
        locked(&self.stand).clone()
    }

    pub fn now_stands(&self, stand: Stand) {
        *locked(&self.stand) = stand;
        fence(Ordering::SeqCst);
        self.watchers.wake_all();
    }

    /// Why it is over. The first reason stays, but that this side has ended it is no reason once
    /// the peer's answer is known. Whether it was not over before.
    pub fn end(&self, ending: Ending) -> bool {
        let (first, known) = match &*locked(&self.stand) {
            Stand::Ended(Ending::PeerLeft { .. } | Ending::Broken(_)) => (false, true),
            Stand::Ended(_) => (false, false),
            _ => (true, false),
        };
        if !known {
            self.now_stands(Stand::Ended(ending));
        }
        first
    }

    /// It takes no more receives from the queue that it shares. Whether that is new.
    pub fn now_had_last_receive(&self) -> bool {
        !self.had_last.swap(true, Ordering::AcqRel)
    }

    pub fn had_last_receive(&self) -> bool {
        self.had_last.load(Ordering::Acquire)
    }

    /// Notes that a probe of the peer is asked for. Whether none was waiting to begin before.
    pub fn ask_probe(&self) -> bool {
        !self.asks_probe.swap(true, Ordering::AcqRel)
    }

    /// Notes that the probe begins: who asks from here on asks for another.
    pub fn probe_begins(&self) {
        self.asks_probe.store(false, Ordering::Release);
    }

    /// Waits until it is over.
    pub async fn ended(&self) -> Ending {
        let ended = || match &*locked(&self.stand) {
            Stand::Ended(ending) => Some(ending.clone()),
            _ => None,
        };
        self.watchers.until(ended).await
    }

    /// The address of the peer's NIC, and the port that it is spoken to at; none of a device
    /// without.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        let way = self.ways(|ways| ways.path.as_ref().map(|(way, _)| way.clone()))?;
        let nic::Way::Network(outer) = way.way() else { return None };
        let (_, peer) = outer.hosts();
        let address = match peer.gid.to_ipv4() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(peer.gid.into()),
        };
        Some(SocketAddr::new(address, peer.port.0))
    }

    pub fn ways<R>(&self, does: impl FnOnce(&mut Ways) -> R) -> R {
        does(&mut locked(&self.ways))
    }
}
