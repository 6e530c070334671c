//! Being asked for a connection.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::TransactionId;
use crate::wire::cm::{Answered, Failover, Path, Rej, RejectReason, Rep, Req, Rtu};

use super::ConnectionManager;
use super::connection::{Asked, Beginning, Connection, Pace, Peer, State};
use super::error::ConnectionError;
use super::event::Event;
use super::extensions::{Extensions, offer, too_long};
use super::ids::ConnectionId;
use super::listener::Room;
use super::standing::Claim;
use super::terms::{Reply, Request, padded};

/// Being asked for a connection.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Takes a connection up. The queue pair must be ready to receive: the peer may send as soon as
    /// it has the reply. What follows is [`Event::Established`] or [`Event::Failed`].
    ///
    /// There may be up to 196 bytes of private data. It returns the extensions that are agreed
    /// upon: those that both speak, or none if there are more than 180 bytes, which leave no room
    /// to say so.
    ///
    /// # Errors
    /// When the connection is not there or was decided, the queue pair is another connection's, or
    /// the private data is too long.
    pub fn accept(
        &mut self,
        id: ConnectionId,
        reply: &Reply,
        private: &[u8],
    ) -> Result<Extensions, ConnectionError> {
        let Self { table, common, services, half_open, .. } = self;
        let connection = table.get(id)?;
        if connection.state != State::RequestReceived {
            let (found, wanted) = (connection.state, "RequestReceived");
            return Err(ConnectionError::State { id, tried: "accepted", found, wanted });
        }
        let place = connection.place;
        let (speak, names) = (connection.extensions, (connection.local(), connection.remote()));
        let failover =
            if connection.alternate { Failover::UNSUPPORTED } else { Failover::ACCEPTED };
        let mut room = padded(private).map_err(|why| too_long("reply", why))?;
        let agreed = offer(&mut room, private.len(), speak);
        table.check_free(reply.qpn)?;
        table.hold(reply.qpn, place);
        let connection = table.get(id)?;
        half_open.decided(place).into_iter().for_each(|listener| services.decided(listener));
        connection.enter(State::ReplySent, common);
        connection.say(reply.message(names, common.config.guid, failover, &room), common);
        connection.wait_for_answer(common);
        Ok(agreed)
    }

    /// Tells that the peer's first packet came to the queue pair of a connection that was accepted:
    /// then it stands, though its last message was lost or is slower. It does nothing to one that
    /// stands already.
    ///
    /// # Errors
    /// When the connection is not there, or was not accepted.
    pub fn arrived(&mut self, id: ConnectionId) -> Result<(), ConnectionError> {
        let connection = self.table.get(id)?;
        let place = connection.place;
        match connection.state {
            State::ReplySent => self.establish(place, &[]),
            State::Established | State::EndSent | State::TimeWait => {}
            found => {
                let wanted = "ReplySent and what follows";
                return Err(ConnectionError::State { id, tried: "reached", found, wanted });
            }
        }
        Ok(())
    }

    fn establish(&mut self, place: u32, private: &[u8]) {
        let Self { table, common, half_open, standing, .. } = self;
        let Some(connection) = table.at(place) else { return };
        half_open.remove(place);
        if let Some(peer) = connection.peer.filter(|_| connection.state == State::ReplySent) {
            standing.add(&connection.way, peer);
        }
        connection.enter(State::Established, common);
        connection.deadline = None;
        connection.last = None;
        common.counters.established += 1;
        let (id, private) = (connection.id, private.to_vec());
        common.events.push_back(Event::Established { id, private });
    }

    /// The peer has the reply.
    pub(super) fn rtu(&mut self, way: &W, rtu: &Rtu<'_>) {
        let Some(place) = self.known(way, rtu.remote, rtu.local) else { return };
        let Some(connection) = self.table.at(place) else { return };
        match connection.state {
            State::ReplySent => self.establish(place, rtu.private.as_bytes()),
            State::Established if planted(Bug::TellsOfEachRtu) => {
                self.establish(place, rtu.private.as_bytes());
            }
            State::Established | State::EndSent | State::TimeWait => {
                self.common.counters.duplicates += 1;
            }
            _ => self.common.counters.stray += 1,
        }
    }

    /// A peer asks for a connection.
    pub(super) fn req(&mut self, way: &W, transaction: TransactionId, req: &Req<'_>) {
        let asked = Asked::of(transaction, req);
        if let Some(place) = self.table.by_peer_id(way, req.ca_guid, req.local) {
            let Some(connection) = self.table.at(place) else { return };
            if connection.asked == Some(asked) && !planted(Bug::TakesRepetitionsForNew) {
                return self.req_again(place);
            }
            return self.claim_by_req(place, way, transaction, req);
        }
        if let Some(place) = self.table.by_peer_qpn(way, req.ca_guid, req.qpn) {
            return self.claim_by_req(place, way, transaction, req);
        }
        let room = self.services.room(req.service);
        let counters = &mut self.common.counters;
        let number = match room {
            Room::Yes(number) | Room::Full(number) => number,
            Room::NotHere if self.services.is_nobodys(req.service) => {
                counters.no_such_service += 1;
                return self.refuse_req(way, transaction, req, RejectReason::INVALID_SERVICE_ID);
            }
            Room::NotHere => return counters.of_others += 1,
        };
        let terms = match Request::read(req) {
            Ok(terms) => terms,
            Err(reason) => {
                counters.unsupported += 1;
                return self.refuse_req(way, transaction, req, reason);
            }
        };
        self.note_newcomer(way, req.ca_guid, req.qpn);
        let full = matches!(room, Room::Full(_));
        if full && !self.make_room(Some((req.service, number)), way) {
            return self.common.counters.backlog_full += 1;
        }
        self.first_req(way, transaction, req, number, terms);
    }

    /// A request names what is another connection's.
    fn claim_by_req(&mut self, place: u32, way: &W, transaction: TransactionId, req: &Req<'_>) {
        if self.claimed(place) == Claim::Refuse {
            self.refuse_req(way, transaction, req, RejectReason::STALE_CONNECTION);
        }
    }

    /// Refuses a request of which nothing is kept.
    fn refuse_req(
        &mut self,
        way: &W,
        transaction: TransactionId,
        req: &Req<'_>,
        reason: RejectReason,
    ) {
        tracing::debug!(service = %req.service, qpn = req.qpn.get(), %reason, "refused");
        let (remote, rejected) = (req.local, Answered::REQ);
        self.common.say(way, transaction, Rej { remote, rejected, reason, ..Rej::default() });
    }

    fn first_req(
        &mut self,
        way: &W,
        transaction: TransactionId,
        req: &Req<'_>,
        number: u64,
        (request, offered, private): (Request, Extensions, &[u8]),
    ) {
        let crowded = self.half_open.len() >= self.common.config.half_open;
        if crowded && !self.make_room(None, way) {
            return self.common.counters.half_open_full += 1;
        }
        if self.table.is_full() && self.half_open.len() > 0 && !self.make_room(None, way) {
            return self.common.counters.half_open_full += 1;
        }
        let Self { table, common, services, half_open, .. } = self;
        let extensions = offered & common.config.extensions;
        let (peer, ours) = (request.local_timeout, request.remote_timeout);
        let pace = Pace::new(&common.config, peer, ours, request.retries);
        let (now, listener) = (common.now, (req.service, number));
        let added = table.add(&mut common.random, |id, place| {
            let beginning = Beginning {
                id,
                place,
                way: way.clone(),
                state: State::RequestReceived,
                transaction,
                pace,
                asked: Some(Asked::of(transaction, req)),
                alternate: req.alternate != Path::default(),
                extensions,
            };
            Connection::new(beginning, now)
        });
        let Ok(connection) = added else {
            common.counters.table_full += 1;
            return self.refuse_req(way, transaction, req, RejectReason::NO_RESOURCES);
        };
        let (id, place) = (connection.id, connection.place);
        common.has_place(place);
        tracing::debug!(id = %id.comm_id(), service = %req.service, "asked");
        connection.wait(connection.pace.patience(), common);
        table.meet(place, Peer { guid: req.ca_guid, id: req.local, qpn: req.qpn });
        services.begin(req.service);
        half_open.add(place, way, listener, common.now);
        if let Some(connection) = table.at(place) {
            connection.prepare_mra(Answered::REQ, common.config.patience);
        }
        let (way, request, private) = (way.clone(), Box::new(request), private.to_vec());
        common.events.push_back(Event::Asked { id, way, request, extensions, private });
    }

    fn req_again(&mut self, place: u32) {
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match connection.state {
            State::RequestReceived => {
                connection.repeat(common);
                connection.wait_for_program(common);
            }
            State::ReplySent => connection.repeat(common),
            // Only a refusal is remembered there.
            State::TimeWait if connection.last.is_some() => connection.repeat(common),
            // The peer has had the reply: this one was on its way for long.
            _ => common.counters.duplicates += 1,
        }
    }
}

/// The largest private data of a reply beside an agreement on extensions, as documented above.
const _: () = assert!(Rep::PRIVATE_DATA - 16 == 180 && Req::PRIVATE_DATA - 16 == 76);
