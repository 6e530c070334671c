//! A connection: its states, the ways between them, and what is known of it.

use std::time::Duration;

use crate::planted::{Bug, planted};
use crate::time::{Time, nanos};
use crate::wire::cm::{Answered, CmRetries, CmTimeout, Mad, Message, Mra, Req};
use crate::wire::{CaGuid, CommId, Psn, Qpn, TransactionId};

use super::common::{Common, Datagram};
use super::config::Config;
use super::event::Silent;
use super::extensions::Extensions;
use super::ids::ConnectionId;

/// The state of a connection, named as the InfiniBand specification does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Asked for, and not answered.
    RequestSent,
    /// Asked for by the peer: the program decides.
    RequestReceived,
    /// Accepted, and the peer does not say yet that it knows.
    ReplySent,
    /// Accepted by the peer: the program makes its queue pair ready.
    ReplyReceived,
    /// Stands.
    Established,
    /// Being ended, and the peer does not say yet that it knows.
    EndSent,
    /// Over: its numbers rest.
    TimeWait,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::RequestSent,
        Self::RequestReceived,
        Self::ReplySent,
        Self::ReplyReceived,
        Self::Established,
        Self::EndSent,
        Self::TimeWait,
    ];

    /// Whether a connection may go from here to there: the whole diagram.
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::RequestSent | Self::RequestReceived => false,
            Self::ReplySent => matches!(self, Self::RequestReceived),
            Self::ReplyReceived => matches!(self, Self::RequestSent),
            Self::Established => matches!(self, Self::ReplySent | Self::ReplyReceived),
            Self::EndSent => matches!(self, Self::Established),
            Self::TimeWait => !matches!(self, Self::TimeWait),
        }
    }

    /// Whether the program was told that it stands.
    pub(super) const fn stands(self) -> bool {
        matches!(self, Self::Established | Self::EndSent)
    }
}

/// What is known of the peer's end once there was a message from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    pub guid: CaGuid,
    /// Its name for the connection.
    pub id: CommId,
    pub qpn: Qpn,
}

/// What tells a request that is repeated from a new one under the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    transaction: TransactionId,
    qpn: Qpn,
    psn: Psn,
}

impl Asked {
    pub fn of(transaction: TransactionId, req: &Req<'_>) -> Self {
        Self { transaction, qpn: req.qpn, psn: req.psn }
    }
}

/// How two managers wait for each other, as the request lays down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long the peer's manager may take to answer, in nanoseconds.
    answer: u64,
    /// How long the peer waits for us, in nanoseconds.
    patience: u64,
    /// How often to say a thing again.
    pub retries: u8,
}

/// A reply and an end are said at least so often within the time that a peer has to confirm them,
/// unless the request wants fewer repetitions: whatever interval it names.
const LEAST_SAID: u32 = 8;

impl Pace {
    /// Of the time-outs for the peer and for us.
    pub fn new(config: &Config, peer: CmTimeout, ours: CmTimeout, retries: CmRetries) -> Self {
        let retries = retries.get();
        let patience = config.wait(ours) * (u32::from(retries) + 1);
        Self { answer: nanos(config.wait(peer)), patience: nanos(patience), retries }
    }

    /// How long the peer's manager may take to answer.
    pub fn answer(&self) -> Duration {
        Duration::from_nanos(self.answer)
    }

    /// How long to wait until a request is said again, or a reply or an end, each of which the peer
    /// has a limited time to confirm.
    pub fn interval(&self, state: State, config: &Config) -> Duration {
        match state {
            State::ReplySent | State::EndSent => {
                let most = config.unconfirmed / LEAST_SAID;
                self.answer().min(most.max(*config.waits.start()))
            }
            _ => self.answer(),
        }
    }

    /// The longest that a connection may stay in a state, if the state passes by time.
    fn limit(&self, state: State, config: &Config) -> Option<Duration> {
        let asks = || self.answer() * (u32::from(self.retries) + 1);
        match state {
            State::RequestSent => Some(config.undecided.max(asks())),
            State::RequestReceived | State::ReplyReceived => Some(config.undecided),
            State::ReplySent | State::EndSent => Some(config.unconfirmed),
            State::Established | State::TimeWait => None,
        }
    }

    /// How long the peer waits for us, with all its repetitions.
    pub fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience)
    }
}

/// A datagram that may have to be said again, without the zeros at its end: most of one that says
/// little, which a connection may keep for as long as it stands.
pub(super) struct Said(Box<[u8]>);

impl Said {
    fn new(mad: &Mad<'_>) -> Self {
        let mut bytes = [0; Mad::LEN];
        mad.emit(&mut bytes);
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Self(bytes[..len].into())
    }

    fn bytes(&self) -> [u8; Mad::LEN] {
        let mut bytes = [0; Mad::LEN];
        bytes[..self.0.len()].copy_from_slice(&self.0);
        bytes
    }
}

/// A connection, in the making, standing, or over.
pub(super) struct Connection<W> {
    pub id: ConnectionId,
    /// Its place in the table, by which its timer is known.
    pub place: u32,
    pub way: W,
    pub state: State,
    pub transaction: TransactionId,
    pub pace: Pace,
    pub peer: Option<Peer>,
    pub qpn: Option<Qpn>,
    /// The request that it answers, where the peer asked.
    pub asked: Option<Asked>,
    /// Whether the peer proposed a second path, which it must be told is not taken.
    pub alternate: bool,
    /// What this side offered; or, where the peer asked, what both speak.
    pub extensions: Extensions,
    /// What was said last, and is said again: when nothing is heard, or when the peer repeats
    /// itself.
    pub last: Option<Said>,
    /// How often that may still be said unasked.
    pub left: u8,
    /// Whether the peer asked for patience since that was said last. It may once.
    pub put_off: bool,
    pub deadline: Option<Time>,
    /// When it came to its state, and whether the peer has asked for patience meanwhile.
    since: Time,
    patient: bool,
    /// When somebody last claimed its name or queue pair, and the peer was asked about it; and
    /// whether the program has still to hear of that.
    pub claimed: Option<Time>,
    pub untaken_claim: bool,
}

/// What a new connection is made of.
pub(super) struct Beginning<W> {
    pub id: ConnectionId,
    pub place: u32,
    pub way: W,
    pub state: State,
    pub transaction: TransactionId,
    pub pace: Pace,
    pub asked: Option<Asked>,
    pub alternate: bool,
    pub extensions: Extensions,
}

impl<W> Connection<W> {
    pub fn new(beginning: Beginning<W>, now: Time) -> Self {
        let Beginning { id, place, way, state, transaction, pace, .. } = beginning;
        let Beginning { asked, alternate, extensions, .. } = beginning;
        Self {
            id,
            place,
            way,
            state,
            transaction,
            pace,
            peer: None,
            qpn: None,
            asked,
            alternate,
            extensions,
            last: None,
            left: 0,
            put_off: false,
            deadline: None,
            since: now,
            patient: false,
            claimed: None,
            untaken_claim: false,
        }
    }

    /// Who did not answer, if nobody has until now; and for how long.
    pub fn silence(&self, now: Time) -> (Silent, Duration) {
        let silence = match self.state {
            State::RequestSent if self.patient => Silent::PeersProgram,
            State::RequestSent => Silent::Peer,
            State::ReplySent => Silent::Confirmation,
            State::EndSent => Silent::End,
            State::RequestReceived | State::ReplyReceived => Silent::OwnProgram,
            State::Established | State::TimeWait => Silent::Peer,
        };
        (silence, now.since(self.since))
    }
}

impl<W: Clone> Connection<W> {
    pub fn local(&self) -> CommId {
        self.id.comm_id()
    }

    /// The peer's name for it, zero where that is not known.
    pub fn remote(&self) -> CommId {
        self.peer.map_or(CommId(0), |peer| peer.id)
    }

    pub fn enter(&mut self, state: State, common: &Common<W>) {
        debug_assert!(self.state.may_become(state), "{:?} to {state:?}", self.state);
        tracing::debug!(id = %self.id.comm_id(), from = ?self.state, to = ?state, "state");
        self.state = state;
        (self.since, self.patient) = (common.now, false);
    }

    /// The peer has asked for patience: its program has as long to decide as it may.
    pub fn be_patient(&mut self) {
        self.patient = true;
    }

    /// When it must have left its state, if that passes by time.
    fn until(&self, config: &Config) -> Option<Time> {
        let limit = self.pace.limit(self.state, config)?;
        let limit = if self.patient { limit.max(config.undecided) } else { limit };
        Some(self.since + limit)
    }

    /// Says something, and remembers it as what is to be said again.
    pub fn say<'m>(&mut self, message: impl Into<Message<'m>>, common: &mut Common<W>) {
        self.prepare(message);
        self.left = self.pace.retries;
        self.put_off = false;
        self.send_last(common);
    }

    /// Remembers what to say if the peer repeats itself.
    pub fn prepare<'m>(&mut self, message: impl Into<Message<'m>>) {
        let mad = Mad { transaction: self.transaction, message: message.into() };
        self.last = Some(Said::new(&mad));
    }

    /// Says something that is not to be said again.
    pub fn say_once<'m>(&self, message: impl Into<Message<'m>>, common: &mut Common<W>) {
        common.say(&self.way, self.transaction, message);
    }

    /// Sends what is to be said if the peer repeats itself.
    pub fn send_last(&self, common: &mut Common<W>) {
        if let Some(last) = &self.last {
            common.push(Datagram { way: self.way.clone(), bytes: last.bytes() });
        }
    }

    /// The peer repeats itself: it is told again what it was told.
    pub fn repeat(&self, common: &mut Common<W>) {
        common.counters.duplicates += 1;
        self.send_last(common);
    }

    /// Nothing was heard: says it again, unless that was done often enough. Whether it was.
    pub fn insist(&mut self, common: &mut Common<W>) -> bool {
        let is_late = self.until(&common.config).is_some_and(|until| common.now >= until);
        let is_over = planted(Bug::SaysNothingAgain) || is_late;
        let left = if is_over { 0 } else { self.left };
        let Some(left) = left.checked_sub(1) else { return false };
        self.left = left;
        self.put_off = false;
        common.counters.resent += 1;
        tracing::debug!(id = %self.id.comm_id(), state = ?self.state, left, "said again");
        self.send_last(common);
        self.wait_for_answer(common);
        true
    }

    /// Waits until what was said is said again.
    pub fn wait_for_answer(&mut self, common: &mut Common<W>) {
        self.wait(self.pace.interval(self.state, &common.config), common);
    }

    /// Asks for patience if the peer repeats what it is to be answered.
    pub fn prepare_mra(&mut self, received: Answered, service_timeout: CmTimeout) {
        let (local, remote) = (self.local(), self.remote());
        self.prepare(Mra { local, remote, received, service_timeout, ..Mra::default() });
    }

    /// Waits for so long, or until it has been in its state for as long as it may.
    pub fn wait(&mut self, delay: Duration, common: &mut Common<W>) {
        let end = common.now + delay;
        let deadline = self.until(&common.config).map_or(end, |until| until.min(end));
        self.deadline = Some(deadline);
        common.timers.arm(self.place, deadline);
    }
}
