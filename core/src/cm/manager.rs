//! The connection manager's data, and how it finds the connection that a message is about.

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;

use crate::common::random::{Random, Seed};
use crate::wire::{CaGuid, CommId};

use super::config::{Config, ConfigError};
use super::connection::Connection;
use super::context::Context;
use super::counters::Counters;
use super::established::EstablishedPeers;
use super::half_open::HalfOpen;
use super::ids::ConnectionId;
use super::services::Services;
use super::state::ConnectionState;
use super::table::Table;

/// A connection manager, as the [module documentation](super) describes it.
///
/// `W` is the way to a peer: whatever the driver needs to send a datagram there. The way by which a
/// connection is requested must equal the way by which the peer's answers are received.
pub struct ConnectionManager<W> {
    pub(super) table: Table<W>,
    pub(super) services: Services,
    pub(super) half_open: HalfOpen<W>,
    pub(super) established: EstablishedPeers<W>,
    /// Places of connections in time-wait that peers requested and that were never established, the
    /// oldest first.
    pub(super) failed_requests: VecDeque<u32>,
    pub(super) context: Context<W>,
    /// A buffer for the places whose timers fired.
    pub(super) fired: Vec<u32>,
}

impl<W: Clone + Eq + Hash> fmt::Debug for ConnectionManager<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionManager")
            .field("guid", &self.context.config.guid)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

/// How much a manager holds at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Connections that are under way, established or being ended.
    pub live: usize,
    /// Places that are taken: by live connections, by those in time-wait, and by those whose last
    /// event was not taken.
    pub places: usize,
    /// Identifiers of peers and queue pairs by which connections are found, at most three for each
    /// connection.
    pub names: usize,
    /// Connections that peers have requested and that are not established yet.
    pub half_open: usize,
    /// Ways by which connections are established.
    pub ways: usize,
    /// Services that this manager listens to.
    pub services: usize,
    /// Events that wait to be taken.
    pub events: usize,
    /// Datagrams that wait to be sent.
    pub outgoing: usize,
}

/// The connection that a message is about, as far as this manager knows it.
pub(super) enum Addressee {
    /// A connection of this manager, by its place in the table.
    Connection(u32),
    /// A connection that does not exist, as this manager may tell the sender.
    Unknown,
    /// A connection of another process, for which this manager does not answer.
    OtherProcess,
}

impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Makes a manager without connections.
    ///
    /// # Errors
    /// When no manager can have this configuration.
    pub fn new(config: Config, seed: Seed) -> Result<Self, ConfigError> {
        let mut random = Random::new(seed);
        let table = Table::new(&config, random.u64())?;
        let half_open = HalfOpen::new(random.u64());
        let established = EstablishedPeers::new(random.u64(), config.tag_bits);
        let services = Services::new(config.owner);
        let (failed_requests, fired) = (VecDeque::new(), Vec::new());
        let context = Context::new(config, random);
        Ok(Self { table, services, half_open, established, failed_requests, context, fired })
    }

    /// Returns the GUID of a connection's peer, once a message has told it and until the connection
    /// is released. The GUID tells one run of the peer's program from the next.
    pub fn peer(&self, id: ConnectionId) -> Option<CaGuid> {
        self.table.look(id)?.peer.map(|peer| peer.guid)
    }

    /// Returns the state of a connection, unless it is released.
    pub fn state(&self, id: ConnectionId) -> Option<ConnectionState> {
        self.table.look(id).map(|connection| connection.state)
    }

    /// Returns the counts since the manager was made.
    pub fn counters(&self) -> &Counters {
        &self.context.counters
    }

    /// Returns how much the manager holds at this moment.
    pub fn usage(&self) -> Usage {
        Usage {
            live: self.table.live,
            places: self.table.taken(),
            names: self.table.names(),
            half_open: self.half_open.len(),
            ways: self.established.len(),
            services: self.services.len(),
            events: self.context.events.len(),
            outgoing: self.context.outgoing.len(),
        }
    }

    /// Finds the connection that a message is about, by the communication IDs of this side and of
    /// the peer.
    pub(super) fn addressee(&mut self, way: &W, local: CommId, remote: CommId) -> Addressee {
        let ids = self.table.ids;
        if !ids.is_ours(local) && !self.services.answers_for(ids.tag(local)) {
            self.context.counters.of_others += 1;
            return Addressee::OtherProcess;
        }
        let is_meant = |found: &&mut Connection<W>| {
            found.way == *way && found.peer.is_none_or(|peer| peer.id == remote)
        };
        match self.table.find(local).filter(is_meant) {
            Some(found) => Addressee::Connection(found.place),
            None => {
                self.context.counters.unknown += 1;
                Addressee::Unknown
            }
        }
    }

    /// Finds the place of the connection that a message is about, if that is a connection of this
    /// manager. For messages that are not answered if their connection is unknown.
    pub(super) fn known(&mut self, way: &W, local: CommId, remote: CommId) -> Option<u32> {
        match self.addressee(way, local, remote) {
            Addressee::Connection(place) => Some(place),
            Addressee::Unknown | Addressee::OtherProcess => None,
        }
    }
}
