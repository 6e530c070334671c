//! The peers with which connections are established, by the way to them, their process tag and their
//! GUID.
//!
//! A process tag is the topmost bits of a queue pair number. Living processes that share an
//! interface never share a tag. So a new peer at an address can only have replaced a peer with its
//! own tag.

use std::collections::HashMap;
use std::hash::Hash;

use crate::common::tag::tag_of;
use crate::wire::{CaGuid, Qpn};

use super::connection::Peer;
use super::keyed_hash::KeyedHash;

/// The peers with one tag at the end of one way: a living process, and those whose tag it has taken
/// over.
#[derive(Default)]
struct PeersOfTag {
    /// The GUID of each peer, and the number of connections that are established with it.
    guids: Vec<(CaGuid, usize)>,
    /// Whether the driver has not yet taken the last event about a newcomer.
    untaken: bool,
}

/// The peers with which connections are established.
pub(super) struct EstablishedPeers<W> {
    /// The peers by their way and their tag.
    peers: HashMap<(W, u32), PeersOfTag, KeyedHash>,
    tag_bits: u32,
}

impl<W: Clone + Eq + Hash> EstablishedPeers<W> {
    /// Makes an empty list, whose hash table is keyed by `secret`.
    pub fn new(secret: u64, tag_bits: u32) -> Self {
        Self { peers: HashMap::with_hasher(KeyedHash(secret)), tag_bits }
    }

    fn key(&self, way: &W, qpn: Qpn) -> (W, u32) {
        (way.clone(), tag_of(qpn, self.tag_bits))
    }

    /// Counts a connection that is established from now on.
    pub fn add(&mut self, way: &W, Peer { guid, qpn, .. }: Peer) {
        let peers = self.peers.entry(self.key(way, qpn)).or_default();
        match peers.guids.iter_mut().find(|(known, _)| *known == guid) {
            Some((_, count)) => *count += 1,
            None => peers.guids.push((guid, 1)),
        }
    }

    /// Stops counting a connection, which is no longer established.
    pub fn remove(&mut self, way: &W, Peer { guid, qpn, .. }: Peer) {
        let key = self.key(way, qpn);
        let Some(peers) = self.peers.get_mut(&key) else { return };
        if let Some((_, count)) = peers.guids.iter_mut().find(|(known, _)| *known == guid) {
            *count -= 1;
        }
        peers.guids.retain(|(_, count)| *count > 0);
        if peers.guids.is_empty() {
            self.peers.remove(&key);
        }
    }

    /// Returns the number of ways by which connections are established. A way counts once for each
    /// tag.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether a peer is a newcomer of which the driver must hear: with its tag, connections are
    /// established by the same way, some of them with other GUIDs. The driver hears of a newcomer
    /// only once until it has [taken](Self::newcomer_taken) the event.
    pub fn is_newcomer(&mut self, way: &W, guid: CaGuid, qpn: Qpn) -> bool {
        let key = self.key(way, qpn);
        let Some(peers) = self.peers.get_mut(&key) else { return false };
        if peers.untaken || peers.guids.iter().all(|(known, _)| *known == guid) {
            return false;
        }
        peers.untaken = true;
        true
    }

    /// Notes that the driver has taken the event about a newcomer with this queue pair.
    pub fn newcomer_taken(&mut self, way: &W, qpn: Qpn) {
        let key = self.key(way, qpn);
        if let Some(peers) = self.peers.get_mut(&key) {
            peers.untaken = false;
        }
    }
}
