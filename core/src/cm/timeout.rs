//! Time-outs: repeating messages, giving connections up, ending time-waits.

use std::hash::Hash;

use super::event::Why;
use super::manager::ConnectionManager;
use super::state::ConnectionState;

/// The work that timers cause.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Processes a timer that fired. The timer may have been armed for an earlier deadline than the
    /// connection has now; then it is armed anew.
    pub(super) fn expire(&mut self, place: u32) {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let Some(deadline) = connection.deadline else { return };
        if deadline > context.now {
            return context.timers.arm(place, deadline);
        }
        connection.deadline = None;
        let waits_for_peer = matches!(
            connection.state,
            ConnectionState::ReqSent | ConnectionState::RepSent | ConnectionState::DreqSent
        );
        if waits_for_peer && connection.retry(context) {
            return;
        }
        match connection.state {
            ConnectionState::Established => {}
            ConnectionState::TimeWait => self.release(place),
            state => {
                let (silence, waited) = connection.silence(context.now);
                match state {
                    ConnectionState::ReqSent => connection.withdraw(context),
                    _ => connection.reject_timed_out(context),
                }
                context.counters.timed_out += 1;
                self.finish(place, Why::TimedOut { silence, waited });
            }
        }
    }
}
