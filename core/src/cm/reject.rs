//! REJ: rejecting a connection, giving one up, and being rejected.

use std::hash::Hash;

use crate::planted::{Bug, planted};
use crate::wire::cm::{AdditionalInfo, Answered, PrivateData, Rej, RejectReason};
use crate::wire::{CaGuid, TransactionId};

use super::connection::Connection;
use super::context::Context;
use super::error::ConnectionError;
use super::event::Why;
use super::ids::ConnectionId;
use super::manager::ConnectionManager;
use super::state::ConnectionState;

impl<W: Clone> Connection<W> {
    /// Returns the REJ that this side would send now, if there is a message of the peer's to
    /// reject.
    ///
    /// A REJ for a time-out carries the GUID of this side's adapter as additional information, by
    /// which the Linux kernel's manager finds the connection.
    pub(super) fn rej<'a>(&self, reason: RejectReason, guid: &'a [u8; 8]) -> Option<Rej<'a>> {
        let (local, remote) = (self.local(), self.remote());
        let info = AdditionalInfo::new(guid).ok().filter(|_| reason == RejectReason::TIMEOUT);
        let rej = Rej { local, remote, reason, info: info.unwrap_or_default(), ..Rej::default() };
        match self.state {
            // After a handshake, the peer knows this side's communication ID.
            ConnectionState::ReqReceived if self.extensions_are_agreed() => {
                Some(Rej { rejected: Answered::OTHER, ..rej })
            }
            ConnectionState::ReqReceived => {
                Some(Rej { local: Rej::default().local, rejected: Answered::REQ, ..rej })
            }
            ConnectionState::RepReceived => Some(Rej { rejected: Answered::REP, ..rej }),
            ConnectionState::RepSent => Some(Rej { rejected: Answered::OTHER, ..rej }),
            _ => None,
        }
    }

    /// Sends a REJ for a time-out to a peer that may still wait for this side.
    pub(super) fn reject_timed_out(&mut self, context: &mut Context<W>) {
        self.forget_message();
        let guid = context.config.guid.0.to_be_bytes();
        if let Some(rej) = self.rej(RejectReason::TIMEOUT, &guid) {
            self.send(rej, context);
        }
    }

    /// Sends a REJ that withdraws this side's REQ, whose answer is no longer waited for. As the
    /// specification has it, the REJ names the communication ID in the REQ, which is the only one
    /// that the peer knows, and the GUID of the adapter that the REQ came from.
    pub(super) fn withdraw(&mut self, context: &mut Context<W>) {
        let guid = context.config.guid.0.to_be_bytes();
        let info = AdditionalInfo::new(&guid).unwrap_or_default();
        let (local, rejected, reason) = (self.local(), Answered::REQ, RejectReason::TIMEOUT);
        self.send_once(Rej { local, rejected, reason, info, ..Rej::default() }, context);
        self.forget_message();
    }
}

/// Rejecting, and being rejected by REJ.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Rejects a connection that a peer requested, or one that a peer accepted; or gives up one that
    /// was accepted here and is not established yet. A program's own reason is
    /// [`CONSUMER`](RejectReason::CONSUMER), which private data can explain.
    ///
    /// No event tells of an outcome then. The connection is over, and is
    /// [released](super::Event::Released) after its time-wait. A peer that repeats its message until
    /// then is sent the REJ again.
    ///
    /// # Errors
    /// When the connection does not exist or is in another state, or the private data is too long.
    pub fn reject(
        &mut self,
        id: ConnectionId,
        reason: RejectReason,
        private: &[u8],
    ) -> Result<(), ConnectionError> {
        let Self { table, context, .. } = self;
        let connection = table.get(id)?;
        let guid = context.config.guid.0.to_be_bytes();
        let Some(rej) = connection.rej(reason, &guid) else {
            let wanted = "ReqReceived, RepReceived and RepSent; cancel or disconnect it";
            let found = connection.state;
            return Err(ConnectionError::State { id, tried: "rejected", found, wanted });
        };
        let private = PrivateData::new(private)?;
        let place = connection.place;
        if !planted(Bug::RefusesInSilence) {
            connection.send(Rej { private, ..rej }, context);
        }
        self.enter_time_wait(place);
        Ok(())
    }

    /// Processes a REJ, by which a peer rejects a connection or gives it up.
    pub(super) fn rej(&mut self, way: &W, transaction: TransactionId, rej: &Rej<'_>) {
        let withdrawn = self.withdrawn(way, rej);
        let place = match withdrawn {
            Some(place) => Some(place),
            None => self.known(way, rej.remote, rej.local),
        };
        let Some(place) = place else { return };
        let Self { table, context, .. } = self;
        let Some(connection) = table.at(place) else { return };
        if connection.state == ConnectionState::TimeWait {
            return context.counters.duplicates += 1;
        }
        // All messages that establish a connection have the transaction ID of its REQ. And a peer
        // that has confirmed a connection had the REP, so it does not withdraw its REQ.
        let is_meant = connection.transaction == transaction;
        if !is_meant || withdrawn.is_some() && connection.state.was_established() {
            return context.counters.stray += 1;
        }
        // The peer of an encrypted connection ends it by a sealed message.
        if connection.is_guarded() && connection.state.was_established() {
            return context.counters.not_authentic += 1;
        }
        let reason = rej.reason;
        tracing::debug!(id = %connection.id.comm_id(), %reason, "refused by the peer");
        context.counters.refused += 1;
        let (info, private) = (rej.info.as_bytes().to_vec(), rej.private.as_bytes().to_vec());
        let why = Why::Refused { reason, info, private };
        connection.forget_message();
        self.finish(place, why);
    }

    /// Finds the connection whose REQ a REJ withdraws, because the requester no longer waits for an
    /// answer. The requester never learned this side's communication ID, so the REJ names the
    /// requester's own ID and the GUID of its adapter.
    fn withdrawn(&self, way: &W, rej: &Rej<'_>) -> Option<u32> {
        let is_late = rej.reason == RejectReason::TIMEOUT && rej.rejected == Answered::REQ;
        let guid = rej.info.as_bytes().first_chunk().filter(|_| is_late && rej.remote.0 == 0)?;
        self.table.by_peer_id(way, CaGuid(u64::from_be_bytes(*guid)), rej.local)
    }
}
