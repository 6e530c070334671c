//! The connections of a manager, and the names by which they are found.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};

use crate::common::random::{Random, take_at_random};
use crate::wire::{CaGuid, CommId, Qpn};

use super::config::{Config, ConfigError};
use super::connection::{Connection, Peer};
use super::error::ConnectionError;
use super::ids::{ConnectionId, Ids};

/// A hasher that begins with a secret, so that nobody can choose names that collide.
#[derive(Clone, Copy)]
pub(super) struct Keyed(pub u64);

impl BuildHasher for Keyed {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// The places that a table begins with.
const FIRST_PLACES: usize = 1024;

/// Every connection has a place; from when its peer is known, it is found by the peer's names, too.
///
/// Those are looked up under the way that they came by. A stranger who claims to be a peer's
/// adapter is thus a peer of its own, and can't have the other's connections taken for stale.
pub(super) struct Table<W> {
    slots: Vec<Option<Box<Connection<W>>>>,
    /// The most places. The table grows up to that.
    most_places: usize,
    /// Places that no connection has.
    free: VecDeque<u32>,
    pub ids: Ids,
    /// The places of connections by their names here.
    by_name: HashMap<CommId, u32, Keyed>,
    by_peer_id: HashMap<(W, CaGuid, CommId), u32, Keyed>,
    by_peer_qpn: HashMap<(W, CaGuid, Qpn), u32, Keyed>,
    by_qpn: BTreeMap<Qpn, u32>,
    /// How many connections are not in time-wait.
    pub live: usize,
    most_live: usize,
}

impl<W: Clone + Eq + Hash> Table<W> {
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
            by_name: HashMap::with_hasher(Keyed(secret)),
            by_peer_id: HashMap::with_hasher(Keyed(secret)),
            by_peer_qpn: HashMap::with_hasher(Keyed(secret)),
            by_qpn: BTreeMap::new(),
            live: 0,
            most_live: config.connections,
        })
    }

    /// Makes places where none is free, as far as there may be more of them.
    fn grow_if_full(&mut self) {
        if !self.free.is_empty() {
            return;
        }
        let before = self.slots.len();
        let places = (2 * before).max(FIRST_PLACES).min(self.most_places);
        self.slots.resize_with(places, || None);
        self.free.extend(before as u32..places as u32);
    }

    /// How many places are taken, those of connections whose last event was not taken among them.
    pub fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many names of peers and queue pairs lead to connections.
    pub fn names(&self) -> usize {
        self.by_peer_id.len() + self.by_peer_qpn.len() + self.by_qpn.len()
    }

    /// Whether there is no room for another connection that is not over.
    pub fn is_full(&self) -> bool {
        self.live >= self.most_live
    }

    /// Puts a connection at a free place, and gives it its name.
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
        // Zero stands for no name.
        let name = loop {
            let name = self.ids.name(random.u32());
            if name.0 != 0 && !self.by_name.contains_key(&name) {
                break name;
            }
        };
        self.by_name.insert(name, place);
        self.live += 1;
        let connection = make(ConnectionId(name), place);
        Ok(self.slots[place as usize].insert(Box::new(connection)))
    }

    pub fn at(&mut self, place: u32) -> Option<&mut Connection<W>> {
        self.slots.get_mut(place as usize)?.as_deref_mut()
    }

    /// Returns the places of all connections for which `is_one` holds.
    pub fn places_of(&self, is_one: impl Fn(&Connection<W>) -> bool) -> Vec<u32> {
        let found = self.slots.iter().flatten().filter(|connection| is_one(connection));
        found.map(|connection| connection.place).collect()
    }

    /// The connection of this name.
    pub fn find(&mut self, name: CommId) -> Option<&mut Connection<W>> {
        let place = *self.by_name.get(&name)?;
        self.at(place)
    }

    /// The connection of this name, to look at.
    pub fn look(&self, name: CommId) -> Option<&Connection<W>> {
        self.slots.get(*self.by_name.get(&name)? as usize)?.as_deref()
    }

    /// The same for a program, which is told if there is none.
    pub fn get(&mut self, id: ConnectionId) -> Result<&mut Connection<W>, ConnectionError> {
        self.find(id.comm_id()).ok_or(ConnectionError::NoSuchConnection(id))
    }

    /// The connection that a peer has this name for.
    pub fn by_peer_id(&self, way: &W, guid: CaGuid, id: CommId) -> Option<u32> {
        self.by_peer_id.get(&(way.clone(), guid, id)).copied()
    }

    /// The connection that a peer's queue pair belongs to.
    pub fn by_peer_qpn(&self, way: &W, guid: CaGuid, qpn: Qpn) -> Option<u32> {
        self.by_peer_qpn.get(&(way.clone(), guid, qpn)).copied()
    }

    /// Enters what is known of a connection's peer.
    pub fn meet(&mut self, place: u32, peer: Peer) {
        let Some(connection) = self.at(place) else { return };
        connection.peer = Some(peer);
        let way = connection.way.clone();
        self.by_peer_id.insert((way.clone(), peer.guid, peer.id), place);
        self.by_peer_qpn.insert((way, peer.guid, peer.qpn), place);
    }

    /// Lets a peer's queue pair go, for a connection that it never had.
    pub fn forget_peer_qpn(&mut self, place: u32) {
        let Some(connection) = self.at(place) else { return };
        let Some(Peer { guid, qpn, .. }) = connection.peer else { return };
        let key = (connection.way.clone(), guid, qpn);
        if self.by_peer_qpn.get(&key) == Some(&place) {
            self.by_peer_qpn.remove(&key);
        }
    }

    /// Whether a queue pair is no other connection's.
    pub fn check_free(&self, qpn: Qpn) -> Result<(), ConnectionError> {
        let taken = self.by_qpn.get(&qpn).and_then(|&place| {
            let connection = self.slots.get(place as usize)?.as_ref()?;
            Some(ConnectionError::QueuePairTaken { qpn, by: connection.id })
        });
        taken.map_or(Ok(()), Err)
    }

    /// Notes whose a queue pair is.
    pub fn hold(&mut self, qpn: Qpn, place: u32) {
        self.by_qpn.insert(qpn, place);
        if let Some(connection) = self.at(place) {
            connection.qpn = Some(qpn);
        }
    }

    /// Forgets a connection and all names that lead to it. Its place is kept until it is
    /// [left](Self::leave).
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

    /// Frees the name and the place of a connection that was taken out.
    pub fn leave(&mut self, id: ConnectionId) {
        self.free.extend(self.by_name.remove(&id.comm_id()));
    }
}
