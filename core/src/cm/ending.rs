//! Ending a connection.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::TransactionId;
use crate::wire::cm::{Drep, Dreq, PrivateData};

use super::connection::State;
use super::error::ConnectionError;
use super::event::Why;
use super::ids::ConnectionId;
use super::{ConnectionManager, Whose};

/// Ending a connection.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Ends a connection that stands. Flush the queue pair before, or the peer may still receive
    /// from it. [`Event::Ended`](super::Event::Ended) tells when the peer knows, or does not
    /// answer.
    ///
    /// # Errors
    /// When the connection is not there or does not stand, or the private data is too long.
    pub fn disconnect(&mut self, id: ConnectionId, private: &[u8]) -> Result<(), ConnectionError> {
        let Self { table, common, .. } = self;
        let connection = table.get(id)?;
        let (State::Established, Some(peer)) = (connection.state, connection.peer) else {
            let (found, wanted) = (connection.state, "Established; before, cancel or reject it");
            return Err(ConnectionError::State { id, tried: "disconnected", found, wanted });
        };
        let (local, remote, remote_qpn) = (connection.local(), peer.id, peer.qpn);
        let private = PrivateData::new(private)?;
        connection.enter(State::EndSent, common);
        connection.say(Dreq { local, remote, remote_qpn, private }, common);
        connection.wait_for_answer(common);
        Ok(())
    }

    /// A peer ends a connection. Whatever became of it here, the peer is told that it is ended:
    /// else it would ask for long.
    pub(super) fn dreq(&mut self, way: &W, transaction: TransactionId, dreq: &Dreq<'_>) {
        let drep = Drep { local: dreq.remote, remote: dreq.local, ..Drep::default() };
        let place = match self.whose(way, dreq.remote, dreq.local) {
            Whose::Found(place) => place,
            Whose::Nobodys if planted(Bug::AnswersNoStranger) => return,
            Whose::Nobodys => return self.common.say(way, transaction, drep),
            Whose::Others => return,
        };
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let is_meant = connection.peer.is_some() && connection.qpn == Some(dreq.remote_qpn);
        match connection.state {
            // It knows the connection by its name and not by its queue pair: damaged, or a guess.
            _ if !is_meant => return common.counters.stray += 1,
            State::TimeWait => common.counters.duplicates += 1,
            _ => {
                // What it would have been told if it had repeated itself has become wrong.
                connection.last = None;
                let private = dreq.private.as_bytes().to_vec();
                self.finish(place, Why::PeerLeft { private });
            }
        }
        self.common.say(way, transaction, drep);
    }

    /// The peer agrees.
    pub(super) fn drep(&mut self, way: &W, drep: &Drep<'_>) {
        let Some(place) = self.known(way, drep.remote, drep.local) else { return };
        let Some(connection) = self.table.at(place) else { return };
        match connection.state {
            State::EndSent => {
                connection.last = None;
                let private = drep.private.as_bytes().to_vec();
                self.finish(place, Why::Agreed { private });
            }
            State::TimeWait => self.common.counters.duplicates += 1,
            _ => self.common.counters.stray += 1,
        }
    }
}
