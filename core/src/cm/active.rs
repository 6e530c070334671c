//! The active side: requesting a connection (REQ), taking the reply (REP), confirming it (RTU).

use std::hash::Hash;

use crate::wire::TransactionId;
use crate::wire::cm::{Answered, PrivateData, QuotedRequest, Rej, RejectReason, Rep, Rtu};

use super::connection::{Connection, NewConnection, Peer, Round};
use super::error::ConnectionError;
use super::event::{Event, Why};
use super::extensions::Extensions;
use super::ids::ConnectionId;
use super::manager::{Addressee, ConnectionManager};
use super::response_timeouts::ResponseTimeouts;
use super::stale::ClaimVerdict;
use super::state::ConnectionState;
use super::terms::{Received, Reply, Request};

/// The calls and messages of the active side.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Requests a connection with a peer (REQ). The outcome is [`Event::Replied`] or
    /// [`Event::Failed`].
    ///
    /// There may be up to 92 bytes of private data, or 56 if the service is a port. The configured
    /// extensions are offered if the private data leaves room for the offer: if it has no more than
    /// 76 bytes, or 40.
    ///
    /// # Errors
    /// When the queue pair belongs to another connection, the private data is too long, there is no
    /// room for another connection, or a port is requested without IP addressing.
    pub fn connect(
        &mut self,
        way: W,
        request: &Request,
        private: &[u8],
    ) -> Result<ConnectionId, ConnectionError> {
        self.connect_with(way, request, private, self.offers_with(Extensions::NONE))
    }

    /// Requests a connection whose packets are to be encrypted, with the handshake's first message.
    /// `encryption` is what is offered of it: one of [`ENCRYPTED`](Extensions::ENCRYPTED), and
    /// ciphers. The outcome is [`Event::Shaken`], [`Event::Failed`], or, from a peer that does not
    /// encrypt, [`Event::Replied`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_encrypted(
        &mut self,
        way: W,
        request: &Request,
        handshake: &[u8],
        encryption: Extensions,
    ) -> Result<ConnectionId, ConnectionError> {
        self.connect_with(way, request, handshake, self.offers_with(encryption))
    }

    /// Returns all that a request offers if it offers this of encryption.
    pub fn offers_with(&self, encryption: Extensions) -> Extensions {
        self.context.config.extensions.without(Extensions::ENCRYPTION) | encryption
    }

    fn connect_with(
        &mut self,
        way: W,
        request: &Request,
        private: &[u8],
        extensions: Extensions,
    ) -> Result<ConnectionId, ConnectionError> {
        let Self { table, context, .. } = self;
        let (service, addressing) = (request.service, request.addressing.is_some());
        if service.ip_port().is_some() != addressing {
            return Err(ConnectionError::Addressing { service, addressing });
        }
        let message = if addressing { "request for a port" } else { "request" };
        let (private, offered) = request
            .private(private, extensions)
            .map_err(|why| ConnectionError::private_data(message, why))?;
        table.check_free(request.qpn)?;
        let (peer, own) = (request.remote_timeout, request.local_timeout);
        let timeouts = ResponseTimeouts::new(&context.config, peer, own, request.retries);
        let transaction = TransactionId(context.random.u64());
        let now = context.now;
        let connection = table.add(&mut context.random, |id, place| {
            let new = NewConnection {
                id,
                place,
                way,
                state: ConnectionState::ReqSent,
                transaction,
                timeouts,
                req: None,
                alternate_path: false,
                extensions: offered,
            };
            Connection::new(new, now)
        })?;
        let (id, place) = (connection.id, connection.place);
        context.add_timer(place);
        tracing::debug!(id = %id.comm_id(), %service, qpn = request.qpn.get(), "asks");
        connection.send(request.message(id.comm_id(), context.config.guid, &private), context);
        connection.wait_to_retry(context);
        table.set_qpn(request.qpn, place);
        Ok(id)
    }

    /// Gives up a request that is not answered, and tells the peer so (REJ). No event tells of an
    /// outcome then: the connection is over, and [released](Event::Released) after its time-wait.
    ///
    /// # Errors
    /// When the connection does not exist, or its request was answered.
    pub fn cancel(&mut self, id: ConnectionId) -> Result<(), ConnectionError> {
        let connection = self.table.get(id)?;
        if connection.state != ConnectionState::ReqSent {
            let (found, wanted) = (connection.state, "ReqSent; reject or disconnect it");
            return Err(ConnectionError::State { id, tried: "cancelled", found, wanted });
        }
        connection.withdraw(&mut self.context);
        let place = connection.place;
        self.enter_time_wait(place);
        Ok(())
    }

    /// Ends a handshake that the peer has answered, with its third message (the first RTU). The
    /// outcome is [`Event::Replied`] or [`Event::Failed`].
    ///
    /// # Errors
    /// When the connection does not exist, the peer has not answered the handshake, or the message is
    /// too long.
    pub fn confirm(&mut self, id: ConnectionId, message: &[u8]) -> Result<(), ConnectionError> {
        let Self { table, context, .. } = self;
        let connection = table.get(id)?;
        let found = (connection.state, connection.round());
        if found != (ConnectionState::RepReceived, Round::Handshake) {
            let (found, wanted) = (connection.state, "RepReceived, in a handshake");
            return Err(ConnectionError::State { id, tried: "confirmed", found, wanted });
        }
        let private = PrivateData::new(message)?;
        let (local, remote) = (connection.local(), connection.remote());
        connection.end_handshake();
        connection.enter(ConnectionState::ReqSent, context);
        connection.send(Rtu { local, remote, private }, context);
        connection.wait_to_retry(context);
        Ok(())
    }

    /// Confirms the peer's reply (RTU), once the queue pair is ready to send. From now on the
    /// connection is established.
    ///
    /// # Errors
    /// When the connection does not exist, no reply has come, or the private data is too long.
    pub fn ready(&mut self, id: ConnectionId, private: &[u8]) -> Result<(), ConnectionError> {
        let Self { table, context, established, .. } = self;
        let connection = table.get(id)?;
        let is_answered = connection.round() == Round::Terms;
        if connection.state != ConnectionState::RepReceived || !is_answered {
            let (found, wanted) = (connection.state, "RepReceived");
            return Err(ConnectionError::State { id, tried: "made ready", found, wanted });
        }
        let private = PrivateData::new(private)?;
        let (local, remote) = (connection.local(), connection.remote());
        connection.enter(ConnectionState::Established, context);
        connection.deadline = None;
        if let Some(peer) = connection.peer {
            established.add(&connection.way, peer);
        }
        connection.send(Rtu { local, remote, private }, context);
        context.counters.established += 1;
        Ok(())
    }

    /// Takes the report of the peer's host that nobody listens on the UDP port that a request was
    /// sent to. The report (an ICMP error) quotes the request.
    ///
    /// A request that is not answered yet fails at once, so a program that waits for its peer to
    /// start can ask again. In any other state the report changes nothing. So a stranger who forges
    /// such a report must guess the 64 bits of a transaction ID, and can harm no established
    /// connection.
    pub fn port_closed(&mut self, quoted: QuotedRequest) {
        let Self { table, context, .. } = self;
        let is_meant = |found: &&mut Connection<W>| {
            found.state == ConnectionState::ReqSent && found.transaction == quoted.transaction
        };
        let Some(connection) = table.find(quoted.id).filter(is_meant) else { return };
        context.counters.closed_ports += 1;
        connection.forget_message();
        let place = connection.place;
        self.finish(place, Why::PortClosed);
    }

    /// Takes the device's report that it has lost the links to the peers along the ways for which
    /// `is_gone` holds. Requests to these peers that are not answered yet fail at once.
    pub fn links_gone(&mut self, is_gone: impl Fn(&W) -> bool) {
        let unanswered = self.table.places_of(|connection| {
            connection.state == ConnectionState::ReqSent && is_gone(&connection.way)
        });
        for place in unanswered {
            if let Some(connection) = self.table.at(place) {
                connection.forget_message();
            }
            self.finish(place, Why::PeerLeft { private: Vec::new() });
        }
    }

    /// Processes a REP, by which a peer accepts a connection that this side requested.
    pub(super) fn rep(&mut self, way: &W, transaction: TransactionId, rep: &Rep<'_>) {
        let place = match self.addressee(way, rep.remote, rep.local) {
            Addressee::Connection(place) => place,
            Addressee::Unknown => return self.reject_rep(way, transaction, rep),
            Addressee::OtherProcess => return,
        };
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match connection.state {
            // Only a peer that has seen the REQ knows its transaction ID.
            ConnectionState::ReqSent if connection.transaction != transaction => {
                context.counters.stray += 1;
            }
            // A late copy of the answer to the handshake, which was confirmed.
            ConnectionState::ReqSent if connection.is_late_copy(rep) => {
                connection.answer_duplicate(context);
            }
            ConnectionState::ReqSent => self.first_rep(place, rep),
            // The peer requested this connection, so it has no REP to send.
            _ if connection.req.is_some() => context.counters.stray += 1,
            ConnectionState::RepReceived => {
                connection.answer_duplicate(context);
                connection.wait_for_program(context);
            }
            ConnectionState::Established => connection.answer_duplicate(context),
            // The peer takes the DREQ even while it waits for the RTU.
            ConnectionState::DreqSent => context.counters.duplicates += 1,
            ConnectionState::TimeWait if connection.has_message() => {
                connection.answer_duplicate(context);
            }
            _ => self.reject_rep(way, transaction, rep),
        }
    }

    /// Rejects a REP for a connection that does not exist.
    fn reject_rep(&mut self, way: &W, transaction: TransactionId, rep: &Rep<'_>) {
        let (rejected, reason) = (Answered::REP, RejectReason::INVALID_COMM_ID);
        let (local, remote) = (rep.remote, rep.local);
        let rej = Rej { local, remote, rejected, reason, ..Rej::default() };
        self.context.send(way, transaction, rej);
    }

    /// Takes the first REP to a connection's REQ.
    fn first_rep(&mut self, place: u32, rep: &Rep<'_>) {
        let peer = Peer { guid: rep.ca_guid, id: rep.local, qpn: rep.qpn };
        let Some(connection) = self.table.at(place) else { return };
        let way = connection.way.clone();
        let old = self.table.by_peer_id(&way, peer.guid, peer.id).filter(|old| *old != place);
        if let Some(old) = old.or_else(|| self.table.by_peer_qpn(&way, peer.guid, peer.qpn)) {
            return match self.judge_claim(old) {
                ClaimVerdict::Drop => {}
                ClaimVerdict::Reject => self.reject_stale_rep(place, rep),
            };
        }
        self.note_newcomer(&way, peer.guid, peer.qpn);
        self.table.set_peer(place, peer);
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        connection.enter(ConnectionState::RepReceived, context);
        let Received { terms, extensions, private } = Reply::read(rep);
        let extensions = extensions & connection.extensions;
        connection.store_mra(Answered::REP, context.config.mra_timeout);
        connection.wait_for_program(context);
        let (id, private) = (connection.id, private.to_vec());
        if extensions.encrypt() && connection.round() == Round::Handshake {
            connection.extensions = extensions;
            context.events.push_back(Event::Shaken { id, extensions, message: private });
            return;
        }
        // The second REP has no offer: what was agreed upon in the first one holds.
        let agreed = connection.extensions_are_agreed();
        let extensions = if agreed { connection.extensions } else { extensions };
        connection.end_handshake();
        let reply = Box::new(terms);
        context.events.push_back(Event::Replied { id, reply, extensions, private });
    }

    /// Rejects a REP whose communication ID or queue pair belongs to another connection, whose peer
    /// is alive.
    fn reject_stale_rep(&mut self, place: u32, rep: &Rep<'_>) {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        let (rejected, reason) = (Answered::REP, RejectReason::STALE_CONNECTION);
        let (local, remote) = (connection.local(), rep.local);
        let rej = Rej { local, remote, rejected, reason, ..Rej::default() };
        connection.send(rej, context);
        self.finish(place, Why::Stale);
    }
}
