//! Which peers have connections that stand, by the way to them, their process tags and their GUIDs,
//! and what is to be thought of a peer that claims to have taken another's place.
//!
//! A process tag is the topmost bits of a queue pair number. Living processes that share an
//! interface never share a tag, so a newcomer can have replaced a peer with its own tag, and no
//! other.
//!
//! A message shows neither where it comes from nor that its sender is who it says. So a claim ends
//! nothing. The peer of the connection that stands is asked, by that connection, whether it is
//! still there; the connection ends if it is not, as it would if its peer had fallen silent.
//!
//! | what a request or a reply says | what happens |
//! |---|---|
//! | its GUID is another than those of connections that stand by the same way with the same tag | [`Event::Newcomer`]: the peers of those are asked; it is taken as any other |
//! | its name or queue pair, with its GUID, is that of a connection that stands | [`Event::Claimed`]: the peer of that is asked; what claims it is dropped for so long, to be repeated, and refused as stale if the connection stands then |
//! | the same of a connection that is being made, is being ended, or rests | it is dropped, to be repeated |

use std::collections::HashMap;
use std::hash::Hash;

use crate::common::tag::tag_of;
use crate::wire::{CaGuid, Qpn};

use super::ConnectionManager;
use super::connection::{Peer, State};
use super::event::Event;
use super::table::Keyed;

/// The peers of one tag at the end of one way: one that lives, and those that it has replaced.
#[derive(Default)]
struct There {
    /// Each GUID, and how many connections stand with its owner.
    guids: Vec<(CaGuid, usize)>,
    /// Whether the program has not yet taken the last event about a newcomer.
    untaken: bool,
}

/// Peers with connections that stand.
pub(super) struct Standing<W> {
    /// By the way, and the tag.
    there: HashMap<(W, u32), There, Keyed>,
    tag_bits: u32,
}

impl<W: Clone + Eq + Hash> Standing<W> {
    pub fn new(secret: u64, tag_bits: u32) -> Self {
        Self { there: HashMap::with_hasher(Keyed(secret)), tag_bits }
    }

    fn key(&self, way: &W, qpn: Qpn) -> (W, u32) {
        (way.clone(), tag_of(qpn, self.tag_bits))
    }

    /// Counts a connection that stands from here on.
    pub fn add(&mut self, way: &W, Peer { guid, qpn, .. }: Peer) {
        let there = self.there.entry(self.key(way, qpn)).or_default();
        match there.guids.iter_mut().find(|(known, _)| *known == guid) {
            Some((_, count)) => *count += 1,
            None => there.guids.push((guid, 1)),
        }
    }

    /// Stops counting a connection, which stands no more.
    pub fn remove(&mut self, way: &W, Peer { guid, qpn, .. }: Peer) {
        let key = self.key(way, qpn);
        let Some(there) = self.there.get_mut(&key) else { return };
        if let Some((_, count)) = there.guids.iter_mut().find(|(known, _)| *known == guid) {
            *count -= 1;
        }
        there.guids.retain(|(_, count)| *count > 0);
        if there.guids.is_empty() {
            self.there.remove(&key);
        }
    }

    /// The number of ways by which connections stand; a way counts once for each tag.
    pub fn len(&self) -> usize {
        self.there.len()
    }

    /// Notes that the program has taken the event about a newcomer with this queue pair.
    pub fn taken(&mut self, way: &W, qpn: Qpn) {
        let key = self.key(way, qpn);
        if let Some(there) = self.there.get_mut(&key) {
            there.untaken = false;
        }
    }
}

/// What to do with what claims a connection's name or queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// Drop it: it is repeated.
    Drop,
    /// Refuse it as stale: the connection's peer is there.
    Refuse,
}

/// Claims to another's place.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Tells of a peer by whose way connections stand that have its tag and other GUIDs.
    pub(super) fn note_newcomer(&mut self, way: &W, guid: CaGuid, qpn: Qpn) {
        let key = self.standing.key(way, qpn);
        let Some(there) = self.standing.there.get_mut(&key) else { return };
        if there.untaken || there.guids.iter().all(|(known, _)| *known == guid) {
            return;
        }
        there.untaken = true;
        self.common.events.push_back(Event::Newcomer { way: way.clone(), qpn });
    }

    /// Somebody claims that a connection's name or queue pair belongs to another one now.
    pub(super) fn claimed(&mut self, place: u32) -> Claim {
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return Claim::Drop };
        common.counters.claims += 1;
        let (now, verification) = (common.now, common.config.verification);
        if connection.state != State::Established {
            return Claim::Drop;
        }
        match connection.claimed {
            Some(at) if now < at + verification => return Claim::Drop,
            Some(at) if now < at + verification * 2 => {
                common.counters.stale += 1;
                return Claim::Refuse;
            }
            // The program has not taken the last event yet.
            Some(_) if connection.untaken_claim => return Claim::Drop,
            _ => {}
        }
        (connection.claimed, connection.untaken_claim) = (Some(now), true);
        tracing::debug!(id = %connection.id.comm_id(), "claimed");
        common.events.push_back(Event::Claimed { id: connection.id });
        Claim::Drop
    }
}
