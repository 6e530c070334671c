//! Answering the handshakes of connections that peers request.

use doorbell_core::cm::ConnectionId;
use doorbell_core::connect::{Answered, Session, clear_of, seal_refusal};
use doorbell_core::wire::cm::RejectReason;

use super::encryption::host_of;
use super::handshakes::Handshake;
use super::listeners::ConnectionRequest;
use super::state::Control;

impl Control {
    /// Handles a peer's request for a connection: hands it to the listener, or answers its handshake
    /// first.
    pub fn asked(&mut self, asked: ConnectionRequest) {
        let id = asked.id;
        let refused = match (asked.extensions.encrypt(), self.encryption.is_required()) {
            (true, _) if self.handshakes.may_answer(self.now) => self.answer_handshake(asked),
            (true, _) => {
                self.handshakes.waiting.push_back(asked);
                Ok(())
            }
            (false, true) => Err(RejectReason::UNENCRYPTED),
            (false, false) => self.listeners.ask(asked, self.mtu),
        };
        if let Err(reason) = refused {
            // The request was made just now, and is undecided: it can be rejected.
            let _ = self.manager.reject(id, reason, &[]);
        }
    }

    /// Answers handshakes that had to wait since there were too many at once.
    pub fn answer_waiting(&mut self) {
        while !self.handshakes.waiting.is_empty() && self.handshakes.may_answer(self.now) {
            let Some(asked) = self.handshakes.waiting.pop_front() else { return };
            let id = asked.id;
            if let Err(reason) = self.answer_handshake(asked) {
                let _ = self.manager.reject(id, reason, &[]);
            }
        }
    }

    /// Answers the handshake of a peer's request.
    fn answer_handshake(&mut self, asked: ConnectionRequest) -> Result<(), RejectReason> {
        let ConnectionRequest { id, way, request, extensions, private, .. } = asked;
        self.listeners.can_ask(&request, self.mtu)?;
        let Some(encrypt) = self.encryption.get() else { return Err(RejectReason::UNENCRYPTED) };
        let (clear, from) = (clear_of(&request, extensions), host_of(way.way()));
        let answered = encrypt.answer(&clear, &private, extensions, &from);
        let Answered { answering, agreed, message } = answered.map_err(|why| {
            tracing::warn!(%from, %why, "a handshake was refused");
            RejectReason::NOT_TRUSTED
        })?;
        self.manager.answer(id, &message, agreed).map_err(|_| RejectReason::UNSUPPORTED)?;
        self.handshakes.answered.insert(id, Handshake { answering, way, request, agreed });
        Ok(())
    }

    /// Handles the end of the handshake of a peer's request: hands the request to the listener, if
    /// the peer may connect.
    pub fn identified(&mut self, id: ConnectionId, message: &[u8]) {
        let Some(handshake) = self.handshakes.answered.remove(&id) else { return };
        let Handshake { answering, way, request, agreed } = handshake;
        let (reason, private) = match answering.identify(message) {
            Ok((session, private)) => {
                let (extensions, session) = (agreed, Some(session));
                let private = private.into();
                let asked = ConnectionRequest { id, way, request, extensions, private, session };
                match self.listeners.ask(asked, self.mtu) {
                    Ok(()) => return,
                    Err(reason) => (reason, Vec::new()),
                }
            }
            Err(not) => {
                tracing::warn!(from = %host_of(way.way()), why = %not.why, "a peer was refused");
                let text = not.why.to_string();
                let said = &text[..text.floor_char_boundary(Session::MOST_IN_REFUSAL)];
                let seal = |mut control| seal_refusal(Box::as_mut(&mut control), said.as_bytes());
                let sealed = not.control.map(seal);
                (RejectReason::NOT_TRUSTED, sealed.unwrap_or_default())
            }
        };
        let _ = self.manager.reject(id, reason, &private);
    }
}
