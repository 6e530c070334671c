//! The connections between members.

use std::sync::Arc;

use super::Mailbox;
use crate::buffers::locked;
use crate::error::SendError;
use crate::peer::Peer;

impl Mailbox {
    /// The connection to a member, if there is one.
    #[inline]
    pub fn peer(&self, whole: u32) -> Option<&Peer> {
        self.peers[whole as usize].get()
    }

    /// All members that there is a connection to.
    pub fn connected(&self) -> impl Iterator<Item = (u32, &Peer)> {
        (0..).zip(&self.peers).filter_map(|(rank, peer)| Some((rank, peer.get()?)))
    }

    /// There is a connection to a member. The first is used to send to the member, whichever side
    /// has made that; of others only the end is watched.
    pub fn is_connected(&self, whole: u32, peer: Peer) {
        locked(&self.ranks).insert(peer.clone(), whole);
        let is_first = self.peers[whole as usize].set(peer.clone()).is_ok();
        if let Some(ending) = peer.ending() {
            self.has_ended(&peer, &ending.to_string());
        } else if is_first {
            self.tell_all_failures(whole, &peer);
        }
    }

    /// There is a connection to a member by which nothing is sent, and whose end is watched.
    pub fn is_watched(&self, whole: u32, peer: &Peer) {
        locked(&self.ranks).insert(peer.clone(), whole);
        if let Some(ending) = peer.ending() {
            self.has_ended(peer, &ending.to_string());
        }
    }

    /// A connection has ended, by which a member has gone unless it has left before.
    pub fn has_ended(&self, peer: &Peer, why: &str) {
        let rank = locked(&self.ranks).remove(peer);
        if let Some(rank) = rank {
            self.is_gone(rank, Arc::from(why));
        }
    }

    /// Looks at all connections, for whoever was not told of some that have ended.
    pub fn look_for_ended(&self) {
        let ended: Vec<_> = {
            let ranks = locked(&self.ranks);
            ranks.keys().filter_map(|peer| Some((peer.clone(), peer.ending()?))).collect()
        };
        for (peer, ending) in ended {
            self.has_ended(&peer, &ending.to_string());
        }
    }

    /// Sending to a member has failed: the member has gone, or can't be told anything.
    #[cold]
    pub fn not_sent(&self, whole: u32, why: &SendError) {
        let why = match why {
            SendError::Gone { ending, .. } => ending.to_string(),
            why => why.to_string(),
        };
        self.is_gone(whole, why.into());
    }
}
