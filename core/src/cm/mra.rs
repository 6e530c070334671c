//! MRA, message receipt acknowledged: asking the peer for more time, and giving the peer more time.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::cm::{Answered, CmTimeout, Mra};

use super::connection::Connection;
use super::context::Context;
use super::error::ConnectionError;
use super::ids::ConnectionId;
use super::manager::ConnectionManager;
use super::state::ConnectionState;

impl<W: Clone> Connection<W> {
    /// Stores an MRA, which is sent if the peer repeats the message that the program has not
    /// answered yet.
    pub(super) fn store_mra(&mut self, received: Answered, service_timeout: CmTimeout) {
        let (local, remote) = (self.local(), self.remote());
        self.store(Mra { local, remote, received, service_timeout, ..Mra::default() });
    }

    /// Waits for the program for as long as the peer, which was just sent an MRA, will wait.
    pub(super) fn wait_for_program(&mut self, context: &mut Context<W>) {
        let service_timeout = context.config.wait(context.config.mra_timeout);
        self.wait(self.timeouts.peer_waits() + service_timeout, context);
    }

    /// Waits longer for the peer, which has sent an MRA.
    fn take_mra(&mut self, service_timeout: CmTimeout, context: &mut Context<W>) {
        if std::mem::replace(&mut self.had_mra, true) || planted(Bug::GrantsNoPatience) {
            return context.counters.duplicates += 1;
        }
        self.extend_state();
        let wait = context.config.wait(service_timeout) + self.timeouts.peer_response();
        self.wait(wait, context);
    }
}

/// Asking for more time, and giving more time.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Asks the peer to wait longer (MRA): the answer to its request, or to its reply, will take up
    /// to `service_timeout`. A peer that repeats its message meanwhile is sent the MRA again.
    ///
    /// Without this call, a peer that repeats its message is sent an MRA with the
    /// [configured](super::Config::mra_timeout) time-out. However often the peer is asked to wait,
    /// the program has in all no longer than [`undecided`](super::Config::undecided).
    ///
    /// # Errors
    /// When the connection does not exist, or does not wait for the program's decision.
    pub fn delay(
        &mut self,
        id: ConnectionId,
        service_timeout: CmTimeout,
    ) -> Result<(), ConnectionError> {
        let Self { table, context, .. } = self;
        let connection = table.get(id)?;
        let received = match connection.state {
            ConnectionState::ReqReceived => Answered::REQ,
            ConnectionState::RepReceived => Answered::REP,
            found => {
                let wanted = "ReqReceived and RepReceived";
                return Err(ConnectionError::State { id, tried: "delayed", found, wanted });
            }
        };
        connection.store_mra(received, service_timeout);
        connection.send_stored(context);
        let wait = context.config.wait(service_timeout) + connection.timeouts.peer_waits();
        connection.wait(wait, context);
        Ok(())
    }

    /// Processes an MRA, by which the peer asks this side to wait longer.
    pub(super) fn mra(&mut self, way: &W, mra: &Mra<'_>) {
        let Some(place) = self.known(way, mra.remote, mra.local) else { return };
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match (connection.state, mra.received) {
            (ConnectionState::ReqSent, Answered::REQ)
            | (ConnectionState::RepSent, Answered::REP) => {
                connection.take_mra(mra.service_timeout, context);
            }
            _ => context.counters.stray += 1,
        }
    }
}
