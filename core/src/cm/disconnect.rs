//! DREQ and DREP: ending a connection, from either side.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::TransactionId;
use crate::wire::cm::{Drep, Dreq, PrivateData, TooLong};

use super::error::ConnectionError;
use super::event::Why;
use super::guard::Ending;
use super::ids::ConnectionId;
use super::manager::{Addressee, ConnectionManager};
use super::state::ConnectionState;

/// Ending a connection, from either side.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Ends an established connection (DREQ). Flush the queue pair before, or the peer may still
    /// receive from it. [`Event::Ended`](super::Event::Ended) follows when the peer has confirmed,
    /// or has not answered in time.
    ///
    /// # Errors
    /// When the connection does not exist or is not established, or the private data is too long.
    pub fn disconnect(&mut self, id: ConnectionId, private: &[u8]) -> Result<(), ConnectionError> {
        let Self { table, context, .. } = self;
        let connection = table.get(id)?;
        let (ConnectionState::Established, Some(peer)) = (connection.state, connection.peer) else {
            let (found, wanted) = (connection.state, "Established; before, cancel or reject it");
            return Err(ConnectionError::State { id, tried: "disconnected", found, wanted });
        };
        let (local, remote, remote_qpn) = (connection.local(), peer.id, peer.qpn);
        let sealed = connection.guard().map(|guard| guard.seal(Ending::Request, private));
        let said = sealed.as_deref().unwrap_or(private);
        // Of a seal, which takes some of the room, the program knows nothing.
        let (given, beside) = (private.len(), said.len() - private.len());
        let private = PrivateData::new(said)
            .map_err(|TooLong { limit, .. }| TooLong { given, limit: limit - beside })?;
        connection.enter(ConnectionState::DreqSent, context);
        connection.send(Dreq { local, remote, remote_qpn, private }, context);
        connection.wait_to_retry(context);
        Ok(())
    }

    /// Processes a DREQ, by which a peer ends a connection. Even if the connection does not exist
    /// here, the peer is sent a DREP, since it would repeat its DREQ otherwise.
    pub(super) fn dreq(&mut self, way: &W, transaction: TransactionId, dreq: &Dreq<'_>) {
        let drep = Drep { local: dreq.remote, remote: dreq.local, ..Drep::default() };
        let place = match self.addressee(way, dreq.remote, dreq.local) {
            Addressee::Connection(place) => place,
            Addressee::Unknown if planted(Bug::AnswersNoStranger) => return,
            Addressee::Unknown => return self.context.send(way, transaction, drep),
            Addressee::OtherProcess => return,
        };
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let is_meant = connection.peer.is_some() && connection.qpn == Some(dreq.remote_qpn);
        let said = dreq.private.as_bytes();
        let said = match connection.guard() {
            Some(guard) => guard.open(Ending::Request, said),
            None => Some(said.to_vec()),
        };
        let Some(said) = said else { return context.counters.not_authentic += 1 };
        let confirmed = connection.guard().map(|guard| guard.seal(Ending::Confirmation, &[]));
        match connection.state {
            // The DREQ names the connection's IDs but another queue pair: it is damaged, or a
            // stranger's guess.
            _ if !is_meant => return context.counters.stray += 1,
            ConnectionState::TimeWait => context.counters.duplicates += 1,
            _ => {
                connection.forget_message();
                self.finish(place, Why::PeerLeft { private: said });
            }
        }
        let private = PrivateData::new(confirmed.as_deref().unwrap_or_default());
        let drep = Drep { private: private.unwrap_or_default(), ..drep };
        self.context.send(way, transaction, drep);
    }

    /// Processes a DREP, by which the peer confirms that the connection is ended.
    pub(super) fn drep(&mut self, way: &W, drep: &Drep<'_>) {
        let Some(place) = self.known(way, drep.remote, drep.local) else { return };
        let Some(connection) = self.table.at(place) else { return };
        match connection.state {
            ConnectionState::DreqSent => {
                let said = drep.private.as_bytes();
                let said = match connection.guard() {
                    Some(guard) => guard.open(Ending::Confirmation, said),
                    None => Some(said.to_vec()),
                };
                let Some(private) = said else { return self.context.counters.not_authentic += 1 };
                connection.forget_message();
                self.finish(place, Why::Agreed { private });
            }
            ConnectionState::TimeWait => self.context.counters.duplicates += 1,
            _ => self.context.counters.stray += 1,
        }
    }
}
