//! Requesting connections, with a handshake if they are to be encrypted.

use doorbell_core::cm::{ConnectionId, ConnectionState, Extensions, Reply, Request};
use doorbell_core::connect::{EncryptionError, Session, clear_of};
use doorbell_core::wire::cm::RejectReason;

use super::connections::{Outgoing, Stage};
use super::encryption::{Shaking, host_of};
use super::state::Control;
use crate::error::ConnectError;
use crate::link::Way;

impl Control {
    /// Requests a connection, with a handshake if it is to be encrypted.
    pub(super) fn request(
        &mut self,
        way: &Way,
        request: &Request,
        private: &[u8],
        in_the_clear: bool,
    ) -> Result<(ConnectionId, Shaking), ConnectError> {
        let encrypt = self.encryption.get().filter(|_| !in_the_clear);
        let Some(encrypt) = encrypt else {
            let id = self.manager.connect(way.clone(), request, private)?;
            return Ok((id, Shaking::Clear));
        };
        let offers = encrypt.offers();
        let offered = self.manager.offers_with(offers);
        let begun = encrypt.request(&clear_of(request, offered), &host_of(way.way()));
        let (requesting, first) = begun.map_err(not_secure)?;
        let id = self.manager.connect_encrypted(way.clone(), request, &first, offers)?;
        Ok((id, Shaking::Begun(requesting)))
    }

    /// Handles a peer's answer to the handshake of a connection that this side requests.
    pub(super) fn shaken(&mut self, id: ConnectionId, agreed: Extensions, message: &[u8]) {
        // If the connection has come to an end since, the event that follows says why.
        if self.manager.state(id) != Some(ConnectionState::RepReceived) {
            return;
        }
        let Some(entry) = self.connections.0.get_mut(&id) else { return };
        let Stage::Asked(outgoing) = &mut entry.stage else { return };
        let shaking = std::mem::take(&mut outgoing.shaking);
        let Shaking::Begun(requesting) = shaking else { return };
        let confirmed = requesting.confirm(message, agreed, &outgoing.private).map_err(not_secure);
        let confirmed = confirmed.and_then(|(third, session)| {
            outgoing.shaking = Shaking::Ended(session);
            self.manager.confirm(id, &third).map_err(ConnectError::from)
        });
        if let Err(why) = confirmed {
            let _ = self.manager.reject(id, RejectReason::NOT_TRUSTED, &[]);
            self.connections.fail(id, why);
        }
    }

    /// Takes what a reply says that is or is not encrypted, as this side demands it. Returns the
    /// program's private data, and the session.
    ///
    /// # Errors
    /// When the reply is not encrypted, and must be; or is not the peer's.
    pub(super) fn open_reply(
        &mut self,
        id: ConnectionId,
        outgoing: &mut Outgoing,
        reply: &Reply,
        private: Vec<u8>,
    ) -> Result<(Vec<u8>, Option<Session>), ConnectError> {
        match std::mem::take(&mut outgoing.shaking) {
            Shaking::Clear => Ok((private, None)),
            Shaking::Begun(_) => {
                let (peer, service) = (outgoing.target.peer.clone(), outgoing.target.service);
                Err(ConnectError::NotEncrypted { peer, service })
            }
            Shaking::Ended(session) => {
                let opened = session.open_reply(reply, &private).ok_or_else(|| {
                    let peer = outgoing.target.peer.clone();
                    ConnectError::Forged { peer, service: outgoing.target.service }
                })?;
                self.manager.guard(id, session.guard())?;
                Ok((opened, Some(session)))
            }
        }
    }
}

fn not_secure(why: EncryptionError) -> ConnectError {
    ConnectError::Handshake(why)
}
