//! Asking for a connection.

use std::hash::Hash;

use crate::wire::TransactionId;
use crate::wire::cm::{
    AdditionalInfo, Answered, PrivateData, QuotedRequest, Rej, RejectReason, Rep, Rtu,
};

use super::common::Common;
use super::connection::{Beginning, Connection, Pace, Peer, State};
use super::error::ConnectionError;
use super::event::{Event, Why};
use super::extensions::too_long;
use super::ids::ConnectionId;
use super::standing::Claim;
use super::terms::{Reply, Request};
use super::{ConnectionManager, Whose};

impl<W: Clone> Connection<W> {
    /// Tells a peer that its answer is not waited for any more. It knows no name of ours but the
    /// one in the request, and which adapter that came from: so the standard has it.
    pub(super) fn withdraw(&mut self, common: &mut Common<W>) {
        let guid = common.config.guid.0.to_be_bytes();
        let info = AdditionalInfo::new(&guid).unwrap_or_default();
        let (local, rejected, reason) = (self.local(), Answered::REQ, RejectReason::TIMEOUT);
        self.say_once(Rej { local, rejected, reason, info, ..Rej::default() }, common);
        self.last = None;
    }
}

/// Asking for a connection.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Asks a peer for a connection. Its outcome is [`Event::Replied`] or [`Event::Failed`].
    ///
    /// There may be up to 92 bytes of private data, or 56 if the service is a port. The extensions
    /// that are configured are offered if they leave room for that: if there are no more than 76,
    /// or 40.
    ///
    /// # Errors
    /// When the queue pair is another connection's, the private data is too long, all connections
    /// are taken, or a port is asked for without IP addressing.
    pub fn connect(
        &mut self,
        way: W,
        request: &Request,
        private: &[u8],
    ) -> Result<ConnectionId, ConnectionError> {
        let Self { table, common, .. } = self;
        let (service, addressing) = (request.service, request.addressing.is_some());
        if service.ip_port().is_some() != addressing {
            return Err(ConnectionError::Addressing { service, addressing });
        }
        let message = if addressing { "request for a port" } else { "request" };
        let (private, offered) = request
            .private(private, common.config.extensions)
            .map_err(|why| too_long(message, why))?;
        table.check_free(request.qpn)?;
        let (peer, ours) = (request.remote_timeout, request.local_timeout);
        let pace = Pace::new(&common.config, peer, ours, request.retries);
        let transaction = TransactionId(common.random.u64());
        let now = common.now;
        let connection = table.add(&mut common.random, |id, place| {
            let beginning = Beginning {
                id,
                place,
                way,
                state: State::RequestSent,
                transaction,
                pace,
                asked: None,
                alternate: false,
                extensions: offered,
            };
            Connection::new(beginning, now)
        })?;
        let (id, place) = (connection.id, connection.place);
        common.has_place(place);
        tracing::debug!(id = %id.comm_id(), %service, qpn = request.qpn.get(), "asks");
        connection.say(request.message(id.comm_id(), common.config.guid, &private), common);
        connection.wait_for_answer(common);
        table.hold(request.qpn, place);
        Ok(id)
    }

    /// Gives up a request that is not answered, and tells the peer so. There is no outcome then:
    /// the connection is over, and [released](Event::Released) after its time-wait.
    ///
    /// # Errors
    /// When the connection is not there, or was answered.
    pub fn cancel(&mut self, id: ConnectionId) -> Result<(), ConnectionError> {
        let connection = self.table.get(id)?;
        if connection.state != State::RequestSent {
            let (found, wanted) = (connection.state, "RequestSent; reject or disconnect it");
            return Err(ConnectionError::State { id, tried: "cancelled", found, wanted });
        }
        connection.withdraw(&mut self.common);
        let place = connection.place;
        self.rest(place);
        Ok(())
    }

    /// Says that the queue pair is ready to send: from now on the connection stands.
    ///
    /// # Errors
    /// When the connection is not there, no reply has come, or the private data is too long.
    pub fn ready(&mut self, id: ConnectionId, private: &[u8]) -> Result<(), ConnectionError> {
        let Self { table, common, standing, .. } = self;
        let connection = table.get(id)?;
        if connection.state != State::ReplyReceived {
            let (found, wanted) = (connection.state, "ReplyReceived");
            return Err(ConnectionError::State { id, tried: "made ready", found, wanted });
        }
        let private = PrivateData::new(private)?;
        let (local, remote) = (connection.local(), connection.remote());
        connection.enter(State::Established, common);
        connection.deadline = None;
        if let Some(peer) = connection.peer {
            standing.add(&connection.way, peer);
        }
        connection.say(Rtu { local, remote, private }, common);
        common.counters.established += 1;
        Ok(())
    }

    /// The system of a peer's host says that nobody is at the port which a request was sent to, and
    /// quotes the request. A request that is not answered yet has failed by that, at once: whoever
    /// waits for a peer to come asks again. Anything else changes nothing, so that somebody who
    /// forges such a message must guess 64 bits of a transaction, and can harm no connection that
    /// stands.
    pub fn port_closed(&mut self, quoted: QuotedRequest) {
        let Self { table, common, .. } = self;
        let is_meant = |found: &&mut Connection<W>| {
            found.state == State::RequestSent && found.transaction == quoted.transaction
        };
        let Some(connection) = table.find(quoted.id).filter(is_meant) else { return };
        common.counters.closed_ports += 1;
        connection.last = None;
        let place = connection.place;
        self.finish(place, Why::PortClosed);
    }

    /// The device has lost the links to the peers along the ways for which `is_gone` holds. Requests
    /// that were sent to these peers, and are not answered yet, have failed by that, at once.
    pub fn links_gone(&mut self, is_gone: impl Fn(&W) -> bool) {
        let unanswered = self.table.places_of(|connection| {
            connection.state == State::RequestSent && is_gone(&connection.way)
        });
        for place in unanswered {
            if let Some(connection) = self.table.at(place) {
                connection.last = None;
            }
            self.finish(place, Why::PeerLeft { private: Vec::new() });
        }
    }

    /// A peer takes a connection up.
    pub(super) fn rep(&mut self, way: &W, transaction: TransactionId, rep: &Rep<'_>) {
        let place = match self.whose(way, rep.remote, rep.local) {
            Whose::Found(place) => place,
            Whose::Nobodys => return self.refuse_rep(way, transaction, rep),
            Whose::Others => return,
        };
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match connection.state {
            // Who answers has seen the request.
            State::RequestSent if connection.transaction != transaction => {
                common.counters.stray += 1;
            }
            State::RequestSent => self.first_rep(place, rep),
            _ if connection.asked.is_some() => common.counters.stray += 1,
            State::ReplyReceived => {
                connection.repeat(common);
                connection.wait_for_program(common);
            }
            State::Established => connection.repeat(common),
            // It will hear of the end, which it takes in this state, too.
            State::EndSent => common.counters.duplicates += 1,
            State::TimeWait if connection.last.is_some() => connection.repeat(common),
            _ => self.refuse_rep(way, transaction, rep),
        }
    }

    fn refuse_rep(&mut self, way: &W, transaction: TransactionId, rep: &Rep<'_>) {
        let (rejected, reason) = (Answered::REP, RejectReason::INVALID_COMM_ID);
        let (local, remote) = (rep.remote, rep.local);
        let rej = Rej { local, remote, rejected, reason, ..Rej::default() };
        self.common.say(way, transaction, rej);
    }

    fn first_rep(&mut self, place: u32, rep: &Rep<'_>) {
        let peer = Peer { guid: rep.ca_guid, id: rep.local, qpn: rep.qpn };
        let Some(connection) = self.table.at(place) else { return };
        let way = connection.way.clone();
        let old = self.table.by_peer_id(&way, peer.guid, peer.id);
        if let Some(old) = old.or_else(|| self.table.by_peer_qpn(&way, peer.guid, peer.qpn)) {
            return match self.claimed(old) {
                Claim::Drop => {}
                Claim::Refuse => self.refuse_stale_rep(place, rep),
            };
        }
        self.note_newcomer(&way, peer.guid, peer.qpn);
        self.table.meet(place, peer);
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        connection.enter(State::ReplyReceived, common);
        let (reply, extensions, private) = Reply::read(rep);
        let extensions = extensions & connection.extensions;
        connection.prepare_mra(Answered::REP, common.config.patience);
        connection.wait_for_program(common);
        let (id, reply, private) = (connection.id, Box::new(reply), private.to_vec());
        common.events.push_back(Event::Replied { id, reply, extensions, private });
    }

    /// The peer takes the connection up with what belongs to another one, which works.
    fn refuse_stale_rep(&mut self, place: u32, rep: &Rep<'_>) {
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let (rejected, reason) = (Answered::REP, RejectReason::STALE_CONNECTION);
        let (local, remote) = (connection.local(), rep.local);
        let rej = Rej { local, remote, rejected, reason, ..Rej::default() };
        connection.say(rej, common);
        self.finish(place, Why::Stale);
    }
}
