//! The state of the control plane.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager, Datagram};
use doorbell_core::connect::Route;
use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{
    self, AddressId, CompletionQueue, CompletionQueueId, Nic, ResourceError, Seed, Sending,
    SharedReceiveQueueId,
};
use doorbell_core::time::Time;
use doorbell_core::wire::{CaGuid, PathMtu, Qpn};
use doorbell_transports::sharing::Membership;
use tokio::sync::broadcast;

use super::connections::{ConnectionTable, Manager};
use super::encryption::Encryption;
use super::grants::Grants;
use super::handshakes::Handshakes;
use super::lingering::Lingering;
use super::listeners::Listeners;
use super::operations::ControlQueue;
use super::paths::Paths;
use crate::dispatch::{AsyncEvent, Dispatcher, ReaderWaker};
use crate::error::OpenError;
use crate::link::{Link, Way};

/// The control plane of a NIC: a software NIC, its connection manager, and the objects that
/// programs have made.
pub(crate) struct Control {
    pub nic: Nic,
    pub manager: Manager,
    pub sharing: Option<Membership>,
    pub mtu: PathMtu,
    /// How long a silent peer is waited for.
    pub patience: Duration,
    /// How long an unanswered request for a connection is repeated.
    pub connect_timeout: Duration,
    /// How connections share the network.
    pub sharing_network: NetworkSharing,
    /// The operations that programs have queued.
    pub operations: Arc<ControlQueue>,
    /// The completion queue of all queue pairs whose requests are futures.
    pub completions: (CompletionQueueId, CompletionQueue),
    pub dispatchers: HashMap<Qpn, Arc<Dispatcher>>,
    pub links: HashMap<Qpn, Arc<Link>>,
    pub readers: HashMap<CompletionQueueId, Arc<ReaderWaker>>,
    pub connections: ConnectionTable,
    /// How connections over a network are encrypted.
    pub encryption: Encryption,
    /// The handshakes of connections that peers request.
    pub(super) handshakes: Handshakes,
    pub listeners: Listeners,
    pub events: broadcast::Sender<AsyncEvent>,
    /// The memory that peers have granted, and the tasks that wait for grants.
    pub grants: Grants,
    pub(super) paths: Paths,
    /// The send queues that their programs have dropped, and whose requests are carried out.
    pub lingering: Lingering,
    /// The time when the clock was read last.
    pub(super) now: Time,
    /// Whether a message that ends a connection is about to be sent.
    pub disconnects: bool,
    /// Whether a task was woken since this was last taken.
    pub woke: bool,
    /// The time of the next look at messages from other processes of the interface.
    pub(super) sharing_due: Time,
    /// A datagram of the connection manager for which the NIC had no room.
    pub(super) unsent: Option<Datagram<Way>>,
    /// Links that have ended, until the connection manager hears of them.
    pub(super) gone: Vec<PathId>,
    /// Broken queue pairs, whose peers are told once the NIC's own answer was sent.
    pub(super) broken_pairs: Vec<Arc<Link>>,
    /// Queue pairs that their programs have dropped.
    pub(super) dropped_pairs: Vec<Qpn>,
    /// Completion queues that their programs have dropped, until no queue pair completes there any
    /// more.
    pub(super) dropped_queues: Vec<(CompletionQueueId, CompletionQueue)>,
    /// Shared receive queues that their programs have dropped, until no queue pair uses them any
    /// more.
    pub(super) dropped_shared_receives: Vec<SharedReceiveQueueId>,
}

/// The most events that are kept for a program that does not take them.
const EVENTS: usize = 1024;

/// How connections share the network with others, as far as their peers let them.
#[derive(Clone, Copy)]
pub(crate) struct NetworkSharing {
    /// Whether queue pairs slow down where their packets wait in queues.
    pub congestion: bool,
    /// Whether packets to standard peers may be marked.
    pub ecn: bool,
    /// How many routes a connection tries.
    pub paths: u8,
}

impl NetworkSharing {
    /// Returns how to send by these rules.
    pub fn apply(self, sending: Sending) -> Sending {
        let Self { congestion, ecn, paths } = self;
        Sending { congestion, ecn, paths, ..sending }
    }
}

/// The settings of a control plane that its device and its program determine.
pub(crate) struct ControlConfig {
    /// The membership among the processes of the interface, if it is shared.
    pub sharing: Option<Membership>,
    pub mtu: PathMtu,
    /// How long a silent peer is waited for.
    pub patience: Duration,
    /// How long an unanswered request for a connection is repeated.
    pub connect_timeout: Duration,
    /// How connections share the network.
    pub sharing_network: NetworkSharing,
    /// How connections over a network are encrypted.
    pub encryption: Encryption,
}

impl Control {
    pub fn new(
        nic: Nic,
        manager: Manager,
        completions: (CompletionQueueId, CompletionQueue),
        config: ControlConfig,
    ) -> Self {
        Self {
            nic,
            manager,
            sharing: config.sharing,
            mtu: config.mtu,
            patience: config.patience,
            connect_timeout: config.connect_timeout,
            sharing_network: config.sharing_network,
            operations: Arc::default(),
            completions,
            dispatchers: HashMap::new(),
            links: HashMap::new(),
            readers: HashMap::new(),
            connections: ConnectionTable::default(),
            encryption: config.encryption,
            handshakes: Handshakes::default(),
            listeners: Listeners::default(),
            events: broadcast::Sender::new(EVENTS),
            grants: Grants::default(),
            paths: Paths::default(),
            lingering: Lingering::default(),
            now: Time::ZERO,
            disconnects: false,
            woke: false,
            sharing_due: Time::ZERO,
            unsent: None,
            gone: Vec::new(),
            broken_pairs: Vec::new(),
            dropped_pairs: Vec::new(),
            dropped_queues: Vec::new(),
            dropped_shared_receives: Vec::new(),
        }
    }

    /// Makes a control plane without connections, with room for one queue pair.
    pub fn without_connections(mtu: PathMtu) -> Result<Self, OpenError> {
        let seed = || Seed::from_number(0);
        let config = nic::Config { queue_pairs: 1, registrations: 1, ..nic::Config::default() };
        let mut nic = Nic::new(config, seed())?;
        let completions = nic.completion_queue(2)?;
        let manager = cm::Config { connections: 1, ..cm::Config::new(CaGuid(0)) };
        let manager = ConnectionManager::new(manager, seed())?;
        let config = ControlConfig {
            sharing: None,
            mtu,
            patience: Duration::ZERO,
            connect_timeout: Duration::ZERO,
            sharing_network: NetworkSharing { congestion: false, ecn: false, paths: 1 },
            encryption: Encryption::OFF,
        };
        Ok(Self::new(nic, manager, completions, config))
    }

    /// Sends an event to the programs that subscribe; it is no error if none does.
    pub fn tell(&self, event: AsyncEvent) {
        let _ = self.events.send(event);
    }

    /// Returns a route that is shared by all connections with an equal one.
    pub fn way(&self, route: Route) -> Way {
        let known = self.paths.known.get_key_value(&route).map(|(known, _)| known);
        match known.filter(|known| known.way() == route.way()) {
            Some(known) => known.clone(),
            None => Arc::new(route),
        }
    }

    /// Returns the numbered path of a queue pair to its peer, and gives back the queue pair's old
    /// path.
    pub fn path(&mut self, link: &Link, way: &Way) -> Path {
        let path = self.paths.take(way);
        if let Some((old, _)) = link.nic_side(|side| side.path.replace((way.clone(), path.id()))) {
            self.paths.give_back(&old);
        }
        path
    }

    /// Registers the route to a destination of datagrams with the NIC.
    pub fn address(&mut self, way: &Way) -> Result<AddressId, ResourceError> {
        let path = self.paths.take(way);
        self.nic.address(path).inspect_err(|_| self.paths.give_back(way))
    }
}
