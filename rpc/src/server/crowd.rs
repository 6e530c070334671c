//! The connected clients of a server by their hosts, and who has to go when there are too many.
//!
//! A client may stay connected for as long as it likes, and an idle one costs little. But the number
//! of connections is bounded, and nobody is to keep others out by having them all:
//!
//! * Beyond half of the places, a host has a quarter of all places at most. Another client of a host
//!   that has more takes the place of the longest idle client of its own host.
//! * When all places are taken, clients that are idle give up theirs: the longest idle ones of the
//!   host that has most.
//!
//! A client is idle if no call of it is under way and none has begun since the last sweep but one of
//! the sessions, which are five seconds apart unless sessions are remembered for less. The session
//! of a client that has given up its place is remembered like that of any other that has gone: the
//! client connects again when it calls next, goes on with its session, and no call runs twice. A
//! new client that finds nobody idle is turned away.

use std::collections::HashMap;

use doorbell_am::{Peer, PeerHost};

use super::sessions::Sessions;

/// The connected clients of a server.
pub struct Crowd {
    /// The most clients.
    most: usize,
    clients: HashMap<Peer, Client>,
    /// The number of clients of each host.
    hosts: HashMap<PeerHost, usize>,
    /// The last look for idle clients that found none: at which sweep that was, and for which host.
    /// Others are idle only after the next sweep.
    in_vain: Option<(u64, Option<PeerHost>)>,
}

struct Client {
    host: PeerHost,
    /// How often the sessions had been swept when the client connected.
    since: u64,
}

/// The part of its places that a crowded server frees at a time, so that not each newcomer has it
/// look through all clients.
const FREED_AT_A_TIME: usize = 64;

/// How many sweeps a client may be connected without saying hello, before it counts as idle.
const SAYS_HELLO_WITHIN: u64 = 2;

#[expect(clippy::mutable_key_type, reason = "a peer is hashed by which connection it is")]
impl Crowd {
    /// Makes an empty crowd, for at most `most` clients.
    pub fn new(most: usize) -> Self {
        let (clients, hosts) = (HashMap::new(), HashMap::new());
        Self { most: most.max(1), clients, hosts, in_vain: None }
    }

    /// Counts a client that has gone off.
    pub fn gone(&mut self, peer: &Peer) {
        let Some(Client { host, .. }) = self.clients.remove(peer) else { return };
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Counts exactly these clients, since some that came or went were missed.
    pub fn are(&mut self, peers: Vec<(Peer, PeerHost)>, sessions: &Sessions) {
        let before = std::mem::take(&mut self.clients);
        self.hosts.clear();
        for (peer, host) in peers {
            let since = before.get(&peer).map_or(sessions.sweeps(), |client| client.since);
            *self.hosts.entry(host).or_default() += 1;
            self.clients.insert(peer, Client { host, since });
        }
    }

    /// Counts a client in that has connected from a host, and ends the connections of clients that
    /// have to go because of that, perhaps the new one's.
    pub fn comes(&mut self, peer: Peer, host: PeerHost, sessions: &mut Sessions) {
        let client = Client { host, since: sessions.sweeps() };
        if self.clients.insert(peer.clone(), client).is_some() {
            return;
        }
        let of_host = self.hosts.entry(host).or_default();
        *of_host += 1;
        let is_over = *of_host > (self.most / 4).max(1);
        let all = self.clients.len();
        let of = (all <= self.most).then_some(host);
        let is_crowded = all > self.most || (is_over && all > self.most / 2);
        if is_crowded && !self.makes_room(of, sessions) {
            self.give_up(&peer, sessions);
        }
    }

    /// Has some idle clients give up their places: of a host, or of those that have most. Returns
    /// whether any did.
    fn makes_room(&mut self, of: Option<PeerHost>, sessions: &mut Sessions) -> bool {
        let look = Some((sessions.sweeps(), of));
        if self.in_vain == look {
            return false;
        }
        let found = self.free(self.most.div_ceil(FREED_AT_A_TIME), of, sessions) > 0;
        self.in_vain = if found { None } else { look };
        found
    }

    /// Has up to `count` idle clients give up their places: of a host, or of those that have most.
    /// Returns how many did.
    fn free(&mut self, count: usize, of: Option<PeerHost>, sessions: &mut Sessions) -> usize {
        let mut idle: HashMap<PeerHost, Vec<(u64, Peer)>> = HashMap::new();
        for (peer, client) in &self.clients {
            if of.is_some_and(|host| host != client.host) {
                continue;
            }
            let silent = sessions.sweeps().saturating_sub(client.since) >= SAYS_HELLO_WITHIN;
            if let Some(since) = sessions.idle_since(peer, silent) {
                idle.entry(client.host).or_default().push((since, peer.clone()));
            }
        }
        // The longest idle ones come last.
        idle.values_mut().for_each(|idle| idle.sort_unstable_by_key(|&(since, _)| !since));
        let mut freed = 0;
        while freed < count {
            let having = |host: &PeerHost| self.hosts.get(host).copied().unwrap_or(0);
            let most = idle.iter().filter(|(_, idle)| !idle.is_empty());
            let Some(host) = most.map(|(&host, _)| host).max_by_key(having) else { break };
            let Some((_, peer)) = idle.get_mut(&host).and_then(Vec::pop) else { break };
            self.give_up(&peer, sessions);
            freed += 1;
        }
        freed
    }

    /// Ends the connection of a client.
    fn give_up(&mut self, peer: &Peer, sessions: &mut Sessions) {
        tracing::debug!(%peer, "a client gives up its place");
        sessions.gives_up(peer);
        self.gone(peer);
    }
}
