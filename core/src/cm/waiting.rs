//! What time does: repeating, giving up, the time-wait and its end.

use std::hash::Hash;
use std::time::Duration;

use crate::planted::{Bug, planted};

use super::ConnectionManager;
use super::connection::State;
use super::event::{Event, Why};

/// What time does.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// A timer went off. It may have been set for an earlier deadline than the one that is valid
    /// now.
    pub(super) fn expire(&mut self, place: u32) {
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let Some(deadline) = connection.deadline else { return };
        if deadline > common.now {
            return common.timers.arm(place, deadline);
        }
        connection.deadline = None;
        let waits_for_peer =
            matches!(connection.state, State::RequestSent | State::ReplySent | State::EndSent);
        if waits_for_peer && connection.insist(common) {
            return;
        }
        match connection.state {
            State::Established => {}
            State::TimeWait => self.release(place),
            state => {
                let (silence, waited) = connection.silence(common.now);
                match state {
                    State::RequestSent => connection.withdraw(common),
                    _ => connection.refuse_late(common),
                }
                common.counters.timed_out += 1;
                self.finish(place, Why::TimedOut { silence, waited });
            }
        }
    }

    /// A connection is over, and the program hears why.
    pub(super) fn finish(&mut self, place: u32, why: Why) {
        let Some(connection) = self.table.at(place) else { return };
        let id = connection.id;
        let event = match connection.state.stands() {
            true => Event::Ended { id, why },
            false => Event::Failed { id, why },
        };
        self.common.events.push_back(event);
        self.rest(place);
    }

    /// Lets a connection's numbers rest. What it said last is said again if the peer repeats
    /// itself.
    pub(super) fn rest(&mut self, place: u32) {
        let Self { table, common, services, half_open, standing, resting, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let was = connection.state;
        connection.enter(State::TimeWait, common);
        half_open.remove(place).into_iter().for_each(|listener| services.decided(listener));
        match connection.peer {
            Some(peer) if was.stands() => standing.remove(&connection.way, peer),
            _ if connection.asked.is_some() => resting.push_back(place),
            _ => {}
        }
        let rest =
            if planted(Bug::RestsNoNames) { Duration::ZERO } else { common.config.time_wait };
        connection.wait(rest, common);
        table.live -= 1;
        // The peer's queue pair was never connected here: it may ask for another connection with
        // it.
        if was == State::RequestReceived {
            table.forget_peer_qpn(place);
        }
        self.bound_rests();
    }

    /// Nothing is left of a connection.
    pub(super) fn release(&mut self, place: u32) {
        let Self { table, common, resting, .. } = self;
        let Some(connection) = table.take(place) else { return };
        common.timers.disarm(place);
        resting.retain(|&other| other != place);
        tracing::debug!(id = %connection.id.comm_id(), "released");
        let (id, qpn) = (connection.id, connection.qpn);
        common.events.push_back(Event::Released { id, qpn });
    }
}
