//! Stale connections: what happens when a REQ or a REP names identifiers that belong to another
//! connection, as after a restart of the peer.
//!
//! A message shows neither where it comes from nor that its sender is who it says. So such a claim
//! does not end the connection that exists. The peer of that connection is asked, on the connection
//! itself, whether it is still alive; if it is not, the connection ends as it would if its peer had
//! fallen silent.
//!
//! | what a REQ or a REP says | what happens |
//! |---|---|
//! | its GUID differs from those of connections that are established by the same way with the same tag | [`Event::Newcomer`]: their peers are asked; the message is processed like any other |
//! | its GUID, with its communication ID or queue pair, is that of an established connection | [`Event::Claimed`]: that connection's peer is asked; the message is dropped meanwhile, to be repeated, and rejected as stale if the connection is still established then |
//! | its GUID, with its communication ID or queue pair, is that of a connection in another state, or of one that is encrypted | the message is dropped, to be repeated |

use std::hash::Hash;

use crate::wire::{CaGuid, Qpn};

use super::event::Event;
use super::manager::ConnectionManager;
use super::state::ConnectionState;

/// The verdict on a message that claims another connection's identifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClaimVerdict {
    /// Drop the message, which its sender will repeat.
    Drop,
    /// Reject the message as stale, because the peer of the connection is alive.
    Reject,
}

/// Claims to the identifiers of other connections.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Tells the driver of a peer that may have replaced the peers of established connections.
    pub(super) fn note_newcomer(&mut self, way: &W, guid: CaGuid, qpn: Qpn) {
        if self.established.is_newcomer(way, guid, qpn) {
            self.context.events.push_back(Event::Newcomer { way: way.clone(), qpn });
        }
    }

    /// Decides about a message that names the identifiers of the connection at a place for another
    /// connection, and tells the driver to ask that connection's peer.
    pub(super) fn judge_claim(&mut self, place: u32) -> ClaimVerdict {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return ClaimVerdict::Drop };
        context.counters.claims += 1;
        let (now, verification) = (context.now, context.config.verification);
        // Nobody ends an encrypted connection by a message that its peer has not sealed.
        if connection.state != ConnectionState::Established || connection.is_guarded() {
            return ClaimVerdict::Drop;
        }
        match connection.claimed_at {
            Some(at) if now < at + verification => return ClaimVerdict::Drop,
            Some(at) if now < at + verification * 2 => {
                context.counters.stale += 1;
                return ClaimVerdict::Reject;
            }
            // The driver has not taken the last event yet.
            Some(_) if connection.claim_untaken => return ClaimVerdict::Drop,
            _ => {}
        }
        (connection.claimed_at, connection.claim_untaken) = (Some(now), true);
        tracing::debug!(id = %connection.id.comm_id(), "claimed");
        context.events.push_back(Event::Claimed { id: connection.id });
        ClaimVerdict::Drop
    }
}
