//! Refusing, being refused; asking for patience, being asked for it.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::cm::{AdditionalInfo, Answered, CmTimeout, Mra, PrivateData, Rej, RejectReason};
use crate::wire::{CaGuid, TransactionId};

use super::ConnectionManager;
use super::common::Common;
use super::connection::{Connection, State};
use super::error::ConnectionError;
use super::event::Why;
use super::ids::ConnectionId;

impl<W: Clone> Connection<W> {
    /// The message that a refusal now would refuse, and the name of ours that the peer knows. One
    /// for want of time says which adapter it comes from, too: by that the Linux kernel's manager
    /// finds the connection.
    pub(super) fn refusal<'a>(&self, reason: RejectReason, guid: &'a [u8; 8]) -> Option<Rej<'a>> {
        let (local, remote) = (self.local(), self.remote());
        let info = AdditionalInfo::new(guid).ok().filter(|_| reason == RejectReason::TIMEOUT);
        let rej = Rej { local, remote, reason, info: info.unwrap_or_default(), ..Rej::default() };
        match self.state {
            State::RequestReceived => {
                Some(Rej { local: Rej::default().local, rejected: Answered::REQ, ..rej })
            }
            State::ReplyReceived => Some(Rej { rejected: Answered::REP, ..rej }),
            State::ReplySent => Some(Rej { rejected: Answered::OTHER, ..rej }),
            _ => None,
        }
    }

    /// Says that nobody answers any more, where somebody may still wait for it.
    pub(super) fn refuse_late(&mut self, common: &mut Common<W>) {
        self.last = None;
        let guid = common.config.guid.0.to_be_bytes();
        if let Some(rej) = self.refusal(RejectReason::TIMEOUT, &guid) {
            self.say(rej, common);
        }
    }

    /// Waits for the program as long as the peer does, which was just asked for patience.
    pub(super) fn wait_for_program(&mut self, common: &mut Common<W>) {
        let asked = common.config.wait(common.config.patience);
        self.wait(self.pace.patience() + asked, common);
    }

    /// Waits longer for the peer, who asked for it.
    fn put_off(&mut self, service_timeout: CmTimeout, common: &mut Common<W>) {
        if std::mem::replace(&mut self.put_off, true) || planted(Bug::GrantsNoPatience) {
            return common.counters.duplicates += 1;
        }
        self.be_patient();
        self.wait(common.config.wait(service_timeout) + self.pace.answer(), common);
    }
}

/// Refusing, and asking for patience.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Refuses a connection that a peer asked for, or one that it took up; or gives up one that was
    /// accepted and does not stand yet. A program's own reason is
    /// [`CONSUMER`](RejectReason::CONSUMER), with private data that says more.
    ///
    /// There is no outcome then: the connection is over, and [released](super::Event::Released)
    /// after its time-wait. A peer that repeats itself until then is told the same again.
    ///
    /// # Errors
    /// When the connection is not there or in another state, or the private data is too long.
    pub fn reject(
        &mut self,
        id: ConnectionId,
        reason: RejectReason,
        private: &[u8],
    ) -> Result<(), ConnectionError> {
        let Self { table, common, .. } = self;
        let connection = table.get(id)?;
        let guid = common.config.guid.0.to_be_bytes();
        let Some(rej) = connection.refusal(reason, &guid) else {
            let wanted = "RequestReceived, ReplyReceived and ReplySent; cancel or disconnect it";
            let found = connection.state;
            return Err(ConnectionError::State { id, tried: "rejected", found, wanted });
        };
        let private = PrivateData::new(private)?;
        let place = connection.place;
        if !planted(Bug::RefusesInSilence) {
            connection.say(Rej { private, ..rej }, common);
        }
        self.rest(place);
        Ok(())
    }

    /// Asks the peer for patience: the answer to its request, or to its reply, will take up to
    /// `service_timeout` longer. A peer that repeats itself meanwhile is told the same again.
    ///
    /// A peer that repeats itself without this is asked for the patience that is configured.
    /// However often it is asked, the program has no longer in all than
    /// [`undecided`](super::Config::undecided) says.
    ///
    /// # Errors
    /// When the connection is not there, or nothing of it is to be decided.
    pub fn delay(
        &mut self,
        id: ConnectionId,
        service_timeout: CmTimeout,
    ) -> Result<(), ConnectionError> {
        let Self { table, common, .. } = self;
        let connection = table.get(id)?;
        let received = match connection.state {
            State::RequestReceived => Answered::REQ,
            State::ReplyReceived => Answered::REP,
            found => {
                let wanted = "RequestReceived and ReplyReceived";
                return Err(ConnectionError::State { id, tried: "delayed", found, wanted });
            }
        };
        connection.prepare_mra(received, service_timeout);
        connection.send_last(common);
        connection.wait(common.config.wait(service_timeout) + connection.pace.patience(), common);
        Ok(())
    }

    /// A peer asks for patience.
    pub(super) fn mra(&mut self, way: &W, mra: &Mra<'_>) {
        let Some(place) = self.known(way, mra.remote, mra.local) else { return };
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        match (connection.state, mra.received) {
            (State::RequestSent, Answered::REQ) | (State::ReplySent, Answered::REP) => {
                connection.put_off(mra.service_timeout, common);
            }
            _ => common.counters.stray += 1,
        }
    }

    /// A peer refuses a connection, or gives it up.
    pub(super) fn rej(&mut self, way: &W, transaction: TransactionId, rej: &Rej<'_>) {
        let withdrawn = self.withdrawn(way, rej);
        let place = match withdrawn {
            Some(place) => Some(place),
            None => self.known(way, rej.remote, rej.local),
        };
        let Some(place) = place else { return };
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        if connection.state == State::TimeWait {
            return common.counters.duplicates += 1;
        }
        // All messages by which a connection is made bear the number of the first. And who has
        // confirmed a connection had the reply, and does not withdraw the request.
        let is_meant = connection.transaction == transaction;
        if !is_meant || withdrawn.is_some() && connection.state.stands() {
            return common.counters.stray += 1;
        }
        let reason = rej.reason;
        tracing::debug!(id = %connection.id.comm_id(), %reason, "refused by the peer");
        common.counters.refused += 1;
        let (info, private) = (rej.info.as_bytes().to_vec(), rej.private.as_bytes().to_vec());
        let why = Why::Refused { reason, info, private };
        // What it would have been told if it had repeated itself has become wrong.
        connection.last = None;
        self.finish(place, why);
    }

    /// The connection that a requester does not wait for any more. It never learned our name for
    /// it, and gives its own and its adapter.
    fn withdrawn(&self, way: &W, rej: &Rej<'_>) -> Option<u32> {
        let is_late = rej.reason == RejectReason::TIMEOUT && rej.rejected == Answered::REQ;
        let guid = rej.info.as_bytes().first_chunk().filter(|_| is_late && rej.remote.0 == 0)?;
        self.table.by_peer_id(way, CaGuid(u64::from_be_bytes(*guid)), rej.local)
    }
}
