//! A connection: what a manager knows of it, and how its last message is repeated.

use std::time::Duration;

use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::cm::{Mad, Message, Rep, Req, Rtu};
use crate::wire::{CaGuid, CommId, Psn, Qpn, TransactionId};

use super::config::Config;
use super::context::{Context, Datagram};
use super::event::Silent;
use super::extensions::Extensions;
use super::guard::Guard;
use super::ids::ConnectionId;
use super::response_timeouts::ResponseTimeouts;
use super::state::ConnectionState;

/// The peer's identifiers of a connection, which are known once the peer has sent a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    pub guid: CaGuid,
    /// The communication ID that the peer has given the connection.
    pub id: CommId,
    pub qpn: Qpn,
}

/// The subject of the messages that establish a connection: there are two if packets are to be
/// encrypted.
///
/// Where packets are to be encrypted, a REQ, a REP and an RTU carry the handshake by which both sides
/// agree on keys, and only then do a second REP and a second RTU carry what the program says. Without
/// encryption there is one round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// The handshake, by which both sides agree on keys.
    Handshake,
    /// The terms of the connection, and the programs' private data.
    Terms,
}

/// The state that only a connection has whose packets are to be encrypted.
pub(super) struct Encrypted {
    /// The subject of the messages of the moment.
    round: Round,
    /// The seal by which messages are known that end the connection, once there are keys.
    guard: Option<Box<dyn Guard>>,
}

/// The fields that tell a repeated REQ from a new REQ with the same communication ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReqIdentity {
    transaction: TransactionId,
    qpn: Qpn,
    psn: Psn,
}

impl ReqIdentity {
    /// Takes the identifying fields from a REQ.
    pub fn of(transaction: TransactionId, req: &Req<'_>) -> Self {
        Self { transaction, qpn: req.qpn, psn: req.psn }
    }
}

/// A datagram that may have to be sent again. The zeros at its end, which are most of a short
/// message, are not stored, since a connection may keep the datagram for as long as it lives.
struct StoredMad(Box<[u8]>);

impl StoredMad {
    /// Encodes and stores a message.
    fn new(mad: &Mad<'_>) -> Self {
        let mut bytes = [0; Mad::LEN];
        mad.emit(&mut bytes);
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Self(bytes[..len].into())
    }

    /// Returns the whole datagram.
    fn bytes(&self) -> [u8; Mad::LEN] {
        let mut bytes = [0; Mad::LEN];
        bytes[..self.0.len()].copy_from_slice(&self.0);
        bytes
    }
}

/// A connection, from its REQ to the end of its time-wait.
pub(super) struct Connection<W> {
    pub id: ConnectionId,
    /// The place in the table, which is also the number of the connection's timer.
    pub place: u32,
    pub way: W,
    pub state: ConnectionState,
    pub transaction: TransactionId,
    pub timeouts: ResponseTimeouts,
    pub peer: Option<Peer>,
    pub qpn: Option<Qpn>,
    /// The peer's REQ, if the peer requested the connection.
    pub req: Option<ReqIdentity>,
    /// Whether the peer's REQ proposed an alternate path, which the REP must decline.
    pub alternate_path: bool,
    /// The extensions that this side offered, or, if the peer requested the connection, those that
    /// both sides can use.
    pub extensions: Extensions,
    /// The state of encryption, if packets are to be encrypted.
    encrypted: Option<Box<Encrypted>>,
    /// The message that is sent when no answer comes, or when the peer repeats its own message.
    to_repeat: Option<StoredMad>,
    /// How often `to_repeat` may still be sent because no answer comes.
    retries_left: u8,
    /// Whether the peer has sent an MRA since `to_repeat` was last sent. Only the first counts.
    pub had_mra: bool,
    pub deadline: Option<Time>,
    /// The time at which the connection entered its state.
    entered: Time,
    /// Whether the peer has sent an MRA since the connection entered its state.
    had_mra_in_state: bool,
    /// The time at which a message last claimed the connection's identifiers, and the driver was
    /// told to ask the peer.
    pub claimed_at: Option<Time>,
    /// Whether the driver has still to take the event about that claim.
    pub claim_untaken: bool,
}

/// The values that a new connection begins with.
pub(super) struct NewConnection<W> {
    pub id: ConnectionId,
    pub place: u32,
    pub way: W,
    pub state: ConnectionState,
    pub transaction: TransactionId,
    pub timeouts: ResponseTimeouts,
    pub req: Option<ReqIdentity>,
    pub alternate_path: bool,
    pub extensions: Extensions,
}

impl<W> Connection<W> {
    /// Makes a connection that enters its first state now.
    pub fn new(new: NewConnection<W>, now: Time) -> Self {
        let NewConnection { id, place, way, state, transaction, timeouts, .. } = new;
        let NewConnection { req, alternate_path, extensions, .. } = new;
        Self {
            id,
            place,
            way,
            state,
            transaction,
            timeouts,
            peer: None,
            qpn: None,
            req,
            alternate_path,
            extensions,
            encrypted: extensions
                .encrypt()
                .then(|| Box::new(Encrypted { round: Round::Handshake, guard: None })),
            to_repeat: None,
            retries_left: 0,
            had_mra: false,
            deadline: None,
            entered: now,
            had_mra_in_state: false,
            claimed_at: None,
            claim_untaken: false,
        }
    }

    /// Whether a REP is a copy of that which answered the handshake. Such a one names no queue pair.
    pub fn is_late_copy(&self, rep: &Rep<'_>) -> bool {
        self.extensions_are_agreed() && rep.qpn == Qpn::new(0)
    }

    /// Whether an RTU is that which ended the handshake. The one that follows says nothing.
    pub fn ends_handshake(&self, rtu: &Rtu<'_>) -> bool {
        self.extensions_are_agreed()
            && rtu.private.as_bytes().first().is_some_and(|&byte| byte != 0)
    }

    /// Returns the subject of the messages of the moment.
    pub fn round(&self) -> Round {
        self.encrypted.as_ref().map_or(Round::Terms, |encrypted| encrypted.round)
    }

    /// Notes that the handshake is over, or that there is none.
    pub fn end_handshake(&mut self) {
        if let Some(encrypted) = &mut self.encrypted {
            encrypted.round = Round::Terms;
        }
    }

    /// Returns the seal by which messages are known that end the connection, if there is one.
    pub fn guard(&mut self) -> Option<&mut (dyn Guard + 'static)> {
        self.encrypted.as_mut()?.guard.as_deref_mut()
    }

    /// Has nobody but the peer end the connection.
    pub fn set_guard(&mut self, guard: Box<dyn Guard>) {
        if let Some(encrypted) = &mut self.encrypted {
            encrypted.guard = Some(guard);
        }
    }

    /// Whether nobody but the peer ends the connection.
    pub fn is_guarded(&self) -> bool {
        self.encrypted.as_ref().is_some_and(|encrypted| encrypted.guard.is_some())
    }

    /// Whether a handshake has settled which extensions are used.
    pub fn extensions_are_agreed(&self) -> bool {
        self.extensions.encrypt() && self.round() == Round::Terms
    }

    /// Returns the party that the connection waits for, and for how long it has waited.
    pub fn silence(&self, now: Time) -> (Silent, Duration) {
        let silent = match self.state {
            ConnectionState::ReqSent if self.had_mra_in_state => Silent::PeersProgram,
            ConnectionState::ReqSent => Silent::Peer,
            ConnectionState::RepSent => Silent::Confirmation,
            ConnectionState::DreqSent => Silent::End,
            ConnectionState::ReqReceived | ConnectionState::RepReceived => Silent::OwnProgram,
            ConnectionState::Established | ConnectionState::TimeWait => Silent::Peer,
        };
        (silent, now.since(self.entered))
    }

    /// Forgets the message that would be repeated, because it has become wrong.
    pub fn forget_message(&mut self) {
        self.to_repeat = None;
    }

    /// Whether a message is stored, which is sent when the peer repeats its own.
    pub fn has_message(&self) -> bool {
        self.to_repeat.is_some()
    }
}

impl<W: Clone> Connection<W> {
    /// Returns the local communication ID.
    pub fn local(&self) -> CommId {
        self.id.comm_id()
    }

    /// Returns the peer's communication ID, or zero if it is not known.
    pub fn remote(&self) -> CommId {
        self.peer.map_or(CommId(0), |peer| peer.id)
    }

    /// Moves the connection to another state.
    pub fn enter(&mut self, state: ConnectionState, context: &Context<W>) {
        debug_assert!(self.state.may_become(state), "{:?} to {state:?}", self.state);
        tracing::debug!(id = %self.id.comm_id(), from = ?self.state, to = ?state, "state");
        self.state = state;
        (self.entered, self.had_mra_in_state) = (context.now, false);
    }

    /// Gives the peer's program as long to decide as any program has, since its manager has sent an
    /// MRA.
    pub fn extend_state(&mut self) {
        self.had_mra_in_state = true;
    }

    /// Returns the time by which the connection must leave its state, if there is a limit.
    fn state_end(&self, config: &Config) -> Option<Time> {
        let limit = self.timeouts.state_limit(self.state, config)?;
        let limit = if self.had_mra_in_state { limit.max(config.undecided) } else { limit };
        Some(self.entered + limit)
    }

    /// Sends a message, and stores it to be repeated.
    pub fn send<'m>(&mut self, message: impl Into<Message<'m>>, context: &mut Context<W>) {
        self.store(message);
        self.retries_left = self.timeouts.retries;
        self.had_mra = false;
        self.send_stored(context);
    }

    /// Stores a message, which is sent if the peer repeats its own.
    pub fn store<'m>(&mut self, message: impl Into<Message<'m>>) {
        let mad = Mad { transaction: self.transaction, message: message.into() };
        self.to_repeat = Some(StoredMad::new(&mad));
    }

    /// Sends a message that is never repeated.
    pub fn send_once<'m>(&self, message: impl Into<Message<'m>>, context: &mut Context<W>) {
        context.send(&self.way, self.transaction, message);
    }

    /// Sends the stored message.
    pub fn send_stored(&self, context: &mut Context<W>) {
        if let Some(mad) = &self.to_repeat {
            context.enqueue(Datagram { way: self.way.clone(), bytes: mad.bytes() });
        }
    }

    /// Sends the stored message in answer to a message that the peer has repeated.
    pub fn answer_duplicate(&self, context: &mut Context<W>) {
        context.counters.duplicates += 1;
        self.send_stored(context);
    }

    /// Repeats the stored message because no answer came. Returns whether it was sent: not if it
    /// was repeated often enough, or if the time for this state is over.
    pub fn retry(&mut self, context: &mut Context<W>) -> bool {
        let is_late = self.state_end(&context.config).is_some_and(|end| context.now >= end);
        let is_over = planted(Bug::SaysNothingAgain) || is_late;
        let left = if is_over { 0 } else { self.retries_left };
        let Some(left) = left.checked_sub(1) else { return false };
        self.retries_left = left;
        self.had_mra = false;
        context.counters.resent += 1;
        tracing::debug!(id = %self.id.comm_id(), state = ?self.state, left, "repeated");
        self.send_stored(context);
        self.wait_to_retry(context);
        true
    }

    /// Sets the deadline at which the stored message is repeated.
    pub fn wait_to_retry(&mut self, context: &mut Context<W>) {
        self.wait(self.timeouts.retry_interval(self.state, &context.config), context);
    }

    /// Sets the deadline after a delay, but no later than the end of the time for this state.
    pub fn wait(&mut self, delay: Duration, context: &mut Context<W>) {
        let after_delay = context.now + delay;
        let state_end = self.state_end(&context.config);
        let deadline = state_end.map_or(after_delay, |end| end.min(after_delay));
        self.deadline = Some(deadline);
        context.timers.arm(self.place, deadline);
    }
}
