//! Recycling of half-open connections: when there are too many, one of them gives its place to a
//! newer request, as the oldest half-open connection of a TCP listener does (RFC 4987, section 3.4).

use std::hash::Hash;

use crate::wire::cm::RejectReason;

use super::event::{Event, Why};
use super::manager::ConnectionManager;
use super::services::ListenerKey;
use super::state::ConnectionState;

/// Making room among half-open connections.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Makes room for a request that came by `way`, among all half-open connections or in a
    /// listener's backlog. Returns whether there is room now.
    pub(super) fn make_room(&mut self, listener: Option<ListenerKey>, way: &W) -> bool {
        let (grace, now) = (self.context.config.grace, self.context.now);
        let Some(victim) = self.half_open.victim(listener, way, grace, now) else { return false };
        self.recycle(victim);
        true
    }

    /// Gives up a half-open connection, without a time-wait.
    ///
    /// If the program has not decided about the connection, its peer hears nothing: the peer
    /// repeats its REQ, and may find room then. If the connection was accepted, its peer gets a REJ,
    /// since it may believe that the connection is established.
    fn recycle(&mut self, place: u32) {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        context.counters.crowded += 1;
        tracing::debug!(id = %connection.id.comm_id(), state = ?connection.state, "crowded out");
        if connection.state == ConnectionState::RepSent
            && let Some(rej) = connection.rej(RejectReason::NO_RESOURCES, &[0; 8])
        {
            connection.send_once(rej, context);
        }
        context.events.push_back(Event::Failed { id: connection.id, why: Why::Crowded });
        self.enter_time_wait(place);
        self.release(place);
    }
}
