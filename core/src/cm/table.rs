//! The table of a manager's connections, and the indices by which they are found.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use crate::common::random::{Random, take_at_random};
use crate::wire::{CaGuid, CommId, Qpn};

use super::config::{Config, ConfigError};
use super::connection::{Connection, Peer};
use super::error::ConnectionError;
use super::ids::{ConnectionId, Ids};
use super::keyed_hash::KeyedHash;

/// The number of places that a table begins with.
const FIRST_PLACES: usize = 1024;

/// The table of a manager's connections. Each connection has a place, and is also found by its
/// communication ID, by its queue pair and, once the peer is known, by the peer's identifiers.
///
/// The peer's identifiers are looked up together with the way that a message came by. A stranger
/// who claims to be a peer's adapter is thus a peer of its own, and can't have the other peer's
/// connections taken for stale.
pub(super) struct Table<W> {
    slots: Vec<Option<Box<Connection<W>>>>,
    /// The number of places up to which the table grows.
    most_places: usize,
    /// Places that no connection has.
    free: VecDeque<u32>,
    pub ids: Ids,
    /// The places of connections by their local communication IDs.
    by_local_id: HashMap<CommId, u32, KeyedHash>,
    by_peer_id: HashMap<(W, CaGuid, CommId), u32, KeyedHash>,
    by_peer_qpn: HashMap<(W, CaGuid, Qpn), u32, KeyedHash>,
    by_qpn: BTreeMap<Qpn, u32>,
    /// The number of connections that were added, modulo 2³².
    added: u32,
    /// The number of connections that are not in time-wait.
    pub live: usize,
    /// The most connections that may be out of time-wait.
    most_live: usize,
}

impl<W: Clone + Eq + Hash> Table<W> {
    /// Makes an empty table, whose hash tables are keyed by `secret`.
    pub fn new(config: &Config, secret: u64) -> Result<Self, ConfigError> {
        if config.connections == 0 {
            return Err(ConfigError::NoConnections);
        }
        let slots = config.connections.saturating_add(config.time_waits);
        let ids = Ids::new(config, slots)?;
        Ok(Self {
            slots: Vec::new(),
            most_places: slots,
            free: VecDeque::new(),
            ids,
            by_local_id: HashMap::with_hasher(KeyedHash(secret)),
            by_peer_id: HashMap::with_hasher(KeyedHash(secret)),
            by_peer_qpn: HashMap::with_hasher(KeyedHash(secret)),
            by_qpn: BTreeMap::new(),
            added: 0,
            live: 0,
            most_live: config.connections,
        })
    }

    /// Adds places if none is free and the table may still grow.
    fn grow_if_full(&mut self) {
        if !self.free.is_empty() {
            return;
        }
        let before = self.slots.len();
        let places = (2 * before).max(FIRST_PLACES).min(self.most_places);
        self.slots.resize_with(places, || None);
        self.free.extend(before as u32..places as u32);
    }

    /// Returns how many places are taken, including those of connections whose last event was not
    /// taken.
    pub fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns how many identifiers of peers and queue pairs lead to connections.
    pub fn names(&self) -> usize {
        self.by_peer_id.len() + self.by_peer_qpn.len() + self.by_qpn.len()
    }

    /// Whether as many connections as are allowed are out of time-wait.
    pub fn is_full(&self) -> bool {
        self.live >= self.most_live
    }

    /// Puts a connection at a free place, under a new communication ID.
    pub fn add(
        &mut self,
        random: &mut Random,
        make: impl FnOnce(ConnectionId, u32) -> Connection<W>,
    ) -> Result<&mut Connection<W>, ConnectionError> {
        if self.is_full() {
            return Err(ConnectionError::Full(self.most_live));
        }
        self.grow_if_full();
        let full = ConnectionError::TimeWaits(self.most_places);
        let place = take_at_random(&mut self.free, random).ok_or(full)?;
        // Zero stands for an unknown communication ID.
        let name = loop {
            let name = self.ids.name(random.u32());
            if name.0 != 0 && !self.by_local_id.contains_key(&name) {
                break name;
            }
        };
        self.by_local_id.insert(name, place);
        self.live += 1;
        let id = ConnectionId { comm_id: name, number: self.added };
        self.added = self.added.wrapping_add(1);
        let connection = make(id, place);
        Ok(self.slots[place as usize].insert(Box::new(connection)))
    }

    /// Returns the connection at a place.
    pub fn at(&mut self, place: u32) -> Option<&mut Connection<W>> {
        self.slots.get_mut(place as usize)?.as_deref_mut()
    }

    /// Returns the places of all connections for which `is_one` holds.
    pub fn places_of(&self, is_one: impl Fn(&Connection<W>) -> bool) -> Vec<u32> {
        let found = self.slots.iter().flatten().filter(|connection| is_one(connection));
        found.map(|connection| connection.place).collect()
    }

    /// Finds a connection by its local communication ID.
    pub fn find(&mut self, name: CommId) -> Option<&mut Connection<W>> {
        let place = *self.by_local_id.get(&name)?;
        self.at(place)
    }

    /// Finds the connection that a program names, for reading only.
    pub fn look(&self, id: ConnectionId) -> Option<&Connection<W>> {
        let place = *self.by_local_id.get(&id.comm_id())?;
        self.slots.get(place as usize)?.as_deref().filter(|connection| connection.id == id)
    }

    /// Finds the connection that a program names.
    ///
    /// # Errors
    /// When there is no such connection.
    pub fn get(&mut self, id: ConnectionId) -> Result<&mut Connection<W>, ConnectionError> {
        let found = self.find(id.comm_id()).filter(|connection| connection.id == id);
        found.ok_or(ConnectionError::NoSuchConnection(id))
    }

    /// Finds the place of a connection by the peer's communication ID.
    pub fn by_peer_id(&self, way: &W, guid: CaGuid, id: CommId) -> Option<u32> {
        self.by_peer_id.get(&(way.clone(), guid, id)).copied()
    }

    /// Finds the place of a connection by the peer's queue pair.
    pub fn by_peer_qpn(&self, way: &W, guid: CaGuid, qpn: Qpn) -> Option<u32> {
        self.by_peer_qpn.get(&(way.clone(), guid, qpn)).copied()
    }

    /// Notes the peer's identifiers of a connection.
    pub fn set_peer(&mut self, place: u32, peer: Peer) {
        let Some(connection) = self.at(place) else { return };
        connection.peer = Some(peer);
        let way = connection.way.clone();
        self.by_peer_id.insert((way.clone(), peer.guid, peer.id), place);
        // During a handshake, the peer has no queue pair yet.
        if peer.qpn != Qpn::new(0) {
            self.by_peer_qpn.insert((way, peer.guid, peer.qpn), place);
        }
    }

    /// Forgets that a peer's queue pair belongs to a connection.
    pub fn forget_peer_qpn(&mut self, place: u32) {
        let Some(connection) = self.at(place) else { return };
        let Some(Peer { guid, qpn, .. }) = connection.peer else { return };
        let key = (connection.way.clone(), guid, qpn);
        if self.by_peer_qpn.get(&key) == Some(&place) {
            self.by_peer_qpn.remove(&key);
        }
    }

    /// Checks that a queue pair belongs to no connection.
    pub fn check_free(&self, qpn: Qpn) -> Result<(), ConnectionError> {
        let taken = self.by_qpn.get(&qpn).and_then(|&place| {
            let connection = self.slots.get(place as usize)?.as_ref()?;
            Some(ConnectionError::QueuePairTaken { qpn, by: connection.id })
        });
        taken.map_or(Ok(()), Err)
    }

    /// Notes the queue pair of a connection.
    pub fn set_qpn(&mut self, qpn: Qpn, place: u32) {
        self.by_qpn.insert(qpn, place);
        if let Some(connection) = self.at(place) {
            connection.qpn = Some(qpn);
        }
    }

    /// Removes a connection and all identifiers that lead to it. Its place and its local
    /// communication ID stay occupied until they are [freed](Self::free_place).
    pub fn take(&mut self, place: u32) -> Option<Box<Connection<W>>> {
        self.forget_peer_qpn(place);
        let connection = self.slots.get_mut(place as usize)?.take()?;
        if let Some(peer) = connection.peer {
            self.by_peer_id.remove(&(connection.way.clone(), peer.guid, peer.id));
        }
        if let Some(qpn) = connection.qpn {
            self.by_qpn.remove(&qpn);
        }
        Some(connection)
    }

    /// Frees the place and the local communication ID of a connection that was removed.
    pub fn free_place(&mut self, id: ConnectionId) {
        self.free.extend(self.by_local_id.remove(&id.comm_id()));
    }
}
