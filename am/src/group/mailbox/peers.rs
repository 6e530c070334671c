//! The connections between members.

use std::collections::BTreeSet;
use std::sync::Arc;

use doorbell_verbs::floor::locked;

use super::Mailbox;
use crate::error::{SendError, WhyGone};
use crate::peer::Peer;

impl Mailbox {
    /// Returns the connection to a member, if there is one.
    #[inline]
    pub fn peer(&self, whole: u32) -> Option<&Peer> {
        self.peers[whole as usize].get()
    }

    /// Returns the members that have a connection with this one which has not ended, whichever of
    /// the two has made it.
    pub fn met(&self) -> BTreeSet<u32> {
        locked(&self.ranks).values().copied().collect()
    }

    /// Records a connection to a member, which either side may have made. The first connection is
    /// used to send to the member; of further ones only the end matters.
    pub fn is_connected(&self, whole: u32, peer: Peer) {
        locked(&self.ranks).insert(peer.clone(), whole);
        let is_first = self.peers[whole as usize].set(peer.clone()).is_ok();
        if let Some(ending) = peer.departed() {
            self.has_ended(&peer, &ending.to_string());
        } else if is_first {
            self.tell_all_failures(whole, &peer);
        }
    }

    /// Handles the end of a connection: its member has gone, unless the member left in order.
    pub fn has_ended(&self, peer: &Peer, why: &str) {
        let rank = locked(&self.ranks).remove(peer);
        if let Some(rank) = rank {
            self.is_gone(rank, Arc::from(why));
        }
    }

    /// Handles the ends of all connections that have ended, after events were lost.
    pub fn look_for_ended(&self) {
        let ended: Vec<_> = {
            let ranks = locked(&self.ranks);
            ranks.keys().filter_map(|peer| Some((peer.clone(), peer.departed()?))).collect()
        };
        for (peer, ending) in ended {
            self.has_ended(&peer, &ending.to_string());
        }
    }

    /// Handles the failure to send to a member, which counts as gone from then on.
    #[cold]
    pub fn not_sent(&self, whole: u32, why: &SendError) {
        let why = match why {
            SendError::Gone { why: WhyGone::Ended(ending), .. } => ending.to_string(),
            why => why.to_string(),
        };
        self.is_gone(whole, why.into());
    }
}
