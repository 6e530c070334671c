//! The passive side: taking a request (REQ), accepting it (REP), and taking the confirmation (RTU).

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::cm::{Answered, Failover, Path, Rej, RejectReason, Rep, Req, Rtu, TooLong};
use crate::wire::{Psn, Qpn, TransactionId};

use super::connection::{Connection, NewConnection, Peer, ReqIdentity, Round};
use super::error::ConnectionError;
use super::event::Event;
use super::extensions::{Extensions, offer};
use super::guard::Guard;
use super::ids::ConnectionId;
use super::manager::ConnectionManager;
use super::response_timeouts::ResponseTimeouts;
use super::services::{Backlog, ListenerKey};
use super::stale::ClaimVerdict;
use super::state::ConnectionState;
use super::terms::{Received, Reply, Request, padded};

/// The calls and messages of the passive side.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Accepts a connection (REP). The queue pair must be ready to receive, since the peer may send
    /// as soon as it has the REP. The outcome is [`Event::Established`] or [`Event::Failed`].
    ///
    /// There may be up to 196 bytes of private data. Returns the extensions that are agreed upon:
    /// those that both sides can use, or none if there are more than 180 bytes of private data,
    /// which leave no room for the agreement.
    ///
    /// # Errors
    /// When the connection does not exist or was decided about, the queue pair belongs to another
    /// connection, or the private data is too long.
    pub fn accept(
        &mut self,
        id: ConnectionId,
        reply: &Reply,
        private: &[u8],
    ) -> Result<Extensions, ConnectionError> {
        let Self { table, context, services, half_open, .. } = self;
        let connection = table.get(id)?;
        if (connection.state, connection.round()) != (ConnectionState::ReqReceived, Round::Terms) {
            let (found, wanted) = (connection.state, "ReqReceived, after a handshake");
            return Err(ConnectionError::State { id, tried: "accepted", found, wanted });
        }
        let (place, extensions) = (connection.place, connection.extensions);
        // If there are two REPs, the first one has said what is agreed upon.
        let was_agreed = connection.extensions_are_agreed();
        let offers = if was_agreed { Extensions::NONE } else { extensions };
        let (local, remote) = (connection.local(), connection.remote());
        let failover =
            if connection.alternate_path { Failover::UNSUPPORTED } else { Failover::ACCEPTED };
        let mut room =
            padded(private).map_err(|why| ConnectionError::private_data("reply", why))?;
        let agreed = offer(&mut room, private.len(), offers);
        let agreed = if was_agreed { extensions } else { agreed };
        table.check_free(reply.qpn)?;
        table.set_qpn(reply.qpn, place);
        let connection = table.get(id)?;
        half_open.decided(place).into_iter().for_each(|listener| services.decided(listener));
        connection.enter(ConnectionState::RepSent, context);
        let rep = reply.message(local, remote, context.config.guid, failover, &room);
        connection.send(rep, context);
        connection.wait_to_retry(context);
        Ok(agreed)
    }

    /// Answers the handshake of a connection whose packets are to be encrypted, with its second message
    /// (the first REP). `agreed` is what both sides will use of the extensions that the peer asked for.
    /// The outcome is [`Event::Identified`] or [`Event::Failed`].
    ///
    /// # Errors
    /// When the connection does not exist, is in no handshake, or the message is longer than the 180
    /// bytes that there are.
    pub fn answer(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        agreed: Extensions,
    ) -> Result<(), ConnectionError> {
        let Self { table, context, .. } = self;
        let connection = table.get(id)?;
        let found = (connection.state, connection.round());
        if found != (ConnectionState::ReqReceived, Round::Handshake) {
            let (found, wanted) = (connection.state, "ReqReceived, in a handshake");
            return Err(ConnectionError::State { id, tried: "answered", found, wanted });
        }
        let mut room =
            padded(message).map_err(|why| ConnectionError::private_data("reply", why))?;
        if offer(&mut room, message.len(), agreed) != agreed {
            let why = TooLong { given: message.len(), limit: Rep::PRIVATE_DATA };
            return Err(ConnectionError::private_data("reply", why));
        }
        connection.extensions = agreed;
        connection.enter(ConnectionState::RepSent, context);
        let (local, remote) = (connection.local(), connection.remote());
        let failover =
            if connection.alternate_path { Failover::UNSUPPORTED } else { Failover::ACCEPTED };
        // There is no queue pair yet, since the program has not accepted.
        let nowhere = Reply::new(Qpn::new(0), Psn::new(0));
        let rep = nowhere.message(local, remote, context.config.guid, failover, &room);
        connection.send(rep, context);
        connection.wait_to_retry(context);
        Ok(())
    }

    /// Has nobody but the peer end a connection whose packets are encrypted: messages that end it are
    /// sealed, and those that are not count for nothing.
    ///
    /// # Errors
    /// When the connection does not exist.
    pub fn guard(
        &mut self,
        id: ConnectionId,
        guard: Box<dyn Guard>,
    ) -> Result<(), ConnectionError> {
        self.table.get(id)?.set_guard(guard);
        Ok(())
    }

    /// Notes that the peer's first packet came to the queue pair of an accepted connection. The
    /// connection is established then, though the peer's RTU was lost or is still on its way. An
    /// established connection does not change.
    ///
    /// # Errors
    /// When the connection does not exist, or was not accepted.
    pub fn arrived(&mut self, id: ConnectionId) -> Result<(), ConnectionError> {
        let connection = self.table.get(id)?;
        let place = connection.place;
        match connection.state {
            ConnectionState::RepSent => self.establish(place, &[]),
            ConnectionState::Established
            | ConnectionState::DreqSent
            | ConnectionState::TimeWait => {}
            found => {
                let wanted = "RepSent and what follows";
                return Err(ConnectionError::State { id, tried: "reached", found, wanted });
            }
        }
        Ok(())
    }

    /// Moves an accepted connection to Established, and tells the driver.
    fn establish(&mut self, place: u32, private: &[u8]) {
        let Self { table, context, half_open, established, .. } = self;
        let Some(connection) = table.at(place) else { return };
        half_open.remove(place);
        let is_first = connection.state == ConnectionState::RepSent;
        if let Some(peer) = connection.peer.filter(|_| is_first) {
            established.add(&connection.way, peer);
        }
        connection.enter(ConnectionState::Established, context);
        connection.deadline = None;
        connection.forget_message();
        context.counters.established += 1;
        let (id, private) = (connection.id, private.to_vec());
        context.events.push_back(Event::Established { id, private });
    }

    /// Processes an RTU, by which the peer confirms that it has the REP.
    pub(super) fn rtu(&mut self, way: &W, rtu: &Rtu<'_>) {
        let Some(place) = self.known(way, rtu.remote, rtu.local) else { return };
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match connection.state {
            ConnectionState::RepSent if connection.round() == Round::Handshake => {
                self.identified(place, rtu.private.as_bytes());
            }
            // A late copy of the RTU that ended the handshake.
            ConnectionState::RepSent if connection.ends_handshake(rtu) => {
                connection.answer_duplicate(context);
            }
            ConnectionState::ReqReceived if connection.ends_handshake(rtu) => {
                connection.answer_duplicate(context);
                connection.wait_for_program(context);
            }
            ConnectionState::RepSent => self.establish(place, rtu.private.as_bytes()),
            ConnectionState::Established if planted(Bug::TellsOfEachRtu) => {
                self.establish(place, rtu.private.as_bytes());
            }
            ConnectionState::Established
            | ConnectionState::DreqSent
            | ConnectionState::TimeWait => self.context.counters.duplicates += 1,
            _ => self.context.counters.stray += 1,
        }
    }

    /// Takes the end of a handshake, after which the program decides.
    fn identified(&mut self, place: u32, message: &[u8]) {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        connection.end_handshake();
        connection.enter(ConnectionState::ReqReceived, context);
        connection.store_mra(Answered::REQ, context.config.mra_timeout);
        connection.wait_for_program(context);
        let (id, message) = (connection.id, message.to_vec());
        context.events.push_back(Event::Identified { id, message });
    }

    /// Processes a REQ, by which a peer requests a connection.
    pub(super) fn req(&mut self, way: &W, transaction: TransactionId, req: &Req<'_>) {
        if let Some(place) = self.table.by_peer_id(way, req.ca_guid, req.local) {
            let Some(connection) = self.table.at(place) else { return };
            let is_repeated = connection.req == Some(ReqIdentity::of(transaction, req));
            if is_repeated && !planted(Bug::TakesRepetitionsForNew) {
                return self.repeated_req(place);
            }
            return self.claim_by_req(place, way, transaction, req);
        }
        if let Some(place) = self.table.by_peer_qpn(way, req.ca_guid, req.qpn) {
            return self.claim_by_req(place, way, transaction, req);
        }
        let backlog = self.services.backlog(req.service);
        let counters = &mut self.context.counters;
        let listener = match backlog {
            Backlog::HasRoom(listener) | Backlog::Full(listener) => listener,
            Backlog::NoListener if self.services.is_nobodys(req.service) => {
                counters.no_such_service += 1;
                return self.reject_req(way, transaction, req, RejectReason::INVALID_SERVICE_ID);
            }
            Backlog::NoListener => return counters.of_others += 1,
        };
        let request = match Request::read(req) {
            Ok(request) => request,
            Err(reason) => {
                counters.unsupported += 1;
                return self.reject_req(way, transaction, req, reason);
            }
        };
        self.note_newcomer(way, req.ca_guid, req.qpn);
        if matches!(backlog, Backlog::Full(_)) && !self.make_room(Some(listener), way) {
            return self.context.counters.backlog_full += 1;
        }
        if !self.has_room_for_half_open(way) {
            return self.context.counters.half_open_full += 1;
        }
        self.first_req(way, transaction, req, listener, request);
    }

    /// Processes a REQ that names the communication ID or the queue pair of another connection.
    fn claim_by_req(&mut self, place: u32, way: &W, transaction: TransactionId, req: &Req<'_>) {
        if self.judge_claim(place) == ClaimVerdict::Reject {
            self.reject_req(way, transaction, req, RejectReason::STALE_CONNECTION);
        }
    }

    /// Rejects a REQ, of which nothing is stored.
    fn reject_req(
        &mut self,
        way: &W,
        transaction: TransactionId,
        req: &Req<'_>,
        reason: RejectReason,
    ) {
        tracing::debug!(service = %req.service, qpn = req.qpn.get(), %reason, "refused");
        let (remote, rejected) = (req.local, Answered::REQ);
        self.context.send(way, transaction, Rej { remote, rejected, reason, ..Rej::default() });
    }

    /// Makes room for another half-open connection, if there are as many as are allowed, or if the
    /// table is full and some of its connections are half-open. Returns whether there is room.
    fn has_room_for_half_open(&mut self, way: &W) -> bool {
        let is_full = self.half_open.len() >= self.context.config.half_open;
        if is_full && !self.make_room(None, way) {
            return false;
        }
        !self.table.is_full() || self.half_open.len() == 0 || self.make_room(None, way)
    }

    /// Takes the first REQ for a connection, whose terms are supported.
    fn first_req(
        &mut self,
        way: &W,
        transaction: TransactionId,
        req: &Req<'_>,
        listener: ListenerKey,
        request: Received<'_, Request>,
    ) {
        let Received { terms, extensions: offered, private } = request;
        let Self { table, context, services, half_open, .. } = self;
        let extensions = offered & context.config.extensions;
        let (peer, own) = (terms.local_timeout, terms.remote_timeout);
        let timeouts = ResponseTimeouts::new(&context.config, peer, own, terms.retries);
        let now = context.now;
        let added = table.add(&mut context.random, |id, place| {
            let new = NewConnection {
                id,
                place,
                way: way.clone(),
                state: ConnectionState::ReqReceived,
                transaction,
                timeouts,
                req: Some(ReqIdentity::of(transaction, req)),
                alternate_path: req.alternate != Path::default(),
                extensions,
            };
            Connection::new(new, now)
        });
        let Ok(connection) = added else {
            context.counters.table_full += 1;
            return self.reject_req(way, transaction, req, RejectReason::NO_RESOURCES);
        };
        let (id, place) = (connection.id, connection.place);
        context.add_timer(place);
        tracing::debug!(id = %id.comm_id(), service = %req.service, "asked");
        connection.wait(connection.timeouts.peer_waits(), context);
        table.set_peer(place, Peer { guid: req.ca_guid, id: req.local, qpn: req.qpn });
        services.begin(req.service);
        half_open.add(place, way, listener, context.now);
        if let Some(connection) = table.at(place) {
            connection.store_mra(Answered::REQ, context.config.mra_timeout);
        }
        let private = match extensions.encrypt() {
            true => private.get(..extensions.handshake_len()).unwrap_or(private),
            false => private,
        };
        let (way, request, private) = (way.clone(), Box::new(terms), private.to_vec());
        context.events.push_back(Event::Asked { id, way, request, extensions, private });
    }

    /// Answers a REQ that the peer has repeated.
    fn repeated_req(&mut self, place: u32) {
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match connection.state {
            ConnectionState::ReqReceived => {
                connection.answer_duplicate(context);
                connection.wait_for_program(context);
            }
            ConnectionState::RepSent => connection.answer_duplicate(context),
            // The stored message can only be a REJ.
            ConnectionState::TimeWait if connection.has_message() => {
                connection.answer_duplicate(context);
            }
            // The peer has had the REP, so this copy of the REQ was delayed in the network.
            _ => context.counters.duplicates += 1,
        }
    }
}

/// The largest private data beside an agreement on extensions, as the documentation of `accept` and
/// of `connect` says.
const _: () = assert!(Rep::PRIVATE_DATA - 16 == 180 && Req::PRIVATE_DATA - 16 == 76);
