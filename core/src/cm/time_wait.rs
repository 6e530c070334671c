//! TimeWait: how a connection ends, and when its identifiers may be used again.

use std::hash::Hash;
use std::time::Duration;

use crate::planted::{Bug, planted};

use super::event::{Event, Why};
use super::manager::ConnectionManager;
use super::state::ConnectionState;

/// The end of a connection.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Ends a connection, and tells the driver why.
    pub(super) fn finish(&mut self, place: u32, why: Why) {
        let Some(connection) = self.table.at(place) else { return };
        let id = connection.id;
        let event = match connection.state.was_established() {
            true => Event::Ended { id, why },
            false => Event::Failed { id, why },
        };
        self.context.events.push_back(event);
        self.enter_time_wait(place);
    }

    /// Moves a connection to TimeWait. Its stored message is sent again if the peer repeats its
    /// own.
    pub(super) fn enter_time_wait(&mut self, place: u32) {
        let Self { table, context, services, half_open, established, failed_requests, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let before = connection.state;
        connection.enter(ConnectionState::TimeWait, context);
        half_open.remove(place).into_iter().for_each(|listener| services.decided(listener));
        match connection.peer {
            Some(peer) if before.was_established() => established.remove(&connection.way, peer),
            _ if connection.req.is_some() => failed_requests.push_back(place),
            _ => {}
        }
        let time_wait =
            if planted(Bug::RestsNoNames) { Duration::ZERO } else { context.config.time_wait };
        connection.wait(time_wait, context);
        table.live -= 1;
        // A request that was never accepted did not connect the peer's queue pair, so the peer may
        // request another connection with that queue pair at once.
        if before == ConnectionState::ReqReceived {
            table.forget_peer_qpn(place);
        }
        self.bound_failed_requests();
    }

    /// Releases the oldest failed requests before their time-wait is over, when more of them are in
    /// TimeWait than half-open connections are allowed. A flood of requests would otherwise fill
    /// the table with connections that were rejected or timed out.
    fn bound_failed_requests(&mut self) {
        while self.failed_requests.len() > self.context.config.half_open {
            let Some(oldest) = self.failed_requests.pop_front() else { return };
            self.release(oldest);
        }
    }

    /// Forgets a connection, whose identifiers may be used again.
    pub(super) fn release(&mut self, place: u32) {
        let Self { table, context, failed_requests, .. } = self;
        let Some(connection) = table.take(place) else { return };
        context.timers.disarm(place);
        failed_requests.retain(|&other| other != place);
        tracing::debug!(id = %connection.id.comm_id(), "released");
        let (id, qpn) = (connection.id, connection.qpn);
        context.events.push_back(Event::Released { id, qpn });
    }
}
