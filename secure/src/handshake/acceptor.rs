//! The side of a handshake that accepts a connection.

use std::fmt;

use super::noise::Noise;
use super::{THIRD_KIND, digest};
use crate::error::{HandshakeError, Message, Refused};
use crate::pattern::{MOST_PRIVATE, THIRD_PAYLOAD};
use crate::policy::Security;
use crate::session::{PeerIdentity, Role, SessionKeys};

/// An acceptor that has answered the first message of a handshake.
#[derive(Debug)]
pub struct Acceptor {
    noise: Noise,
    security: Security,
}

/// The outcome of a handshake for the acceptor: keys, and who the requester is.
pub struct Established {
    /// The keys of the session.
    pub keys: SessionKeys,
    /// The identity that the requester has proved.
    pub peer: PeerIdentity,
    /// The private data of the requester's program.
    pub private: Vec<u8>,
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Answers the first message of a handshake, which padding may follow. Returns the second
    /// message, of [`Pattern::second_len`] bytes.
    ///
    /// The prologue is what the request has in clear. The terms are everything that the reply
    /// settles in clear. The requester must give the same bytes for both.
    ///
    /// # Errors
    /// When the message is too short. When the requester does not know the shared secret, if both
    /// sides prove themselves by nothing but that.
    ///
    /// [`Pattern::second_len`]: crate::Pattern::second_len
    pub fn answer(
        security: &Security,
        prologue: &[u8],
        first: &[u8],
        terms: &[u8],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut noise = Noise::begin(security, prologue, Role::Acceptor)?;
        let len = noise.pattern().first_len();
        noise.read::<0>(Message::First, first, len)?;
        let second = noise.write(&digest(terms))?;
        Ok((Self { noise, security: security.clone() }, second))
    }

    /// Reads the third message, which padding may follow, and ends the handshake. `from` is the
    /// address of the requester, by which [`Trust::FirstUse`](crate::Trust::FirstUse) knows it.
    ///
    /// # Errors
    /// When the message was changed on its way, when the requester does not know the shared secret,
    /// or when its key is not trusted. The error has the keys by which an untrusted requester can
    /// be told that it was refused.
    pub fn third(mut self, message: &[u8], from: &str) -> Result<Established, Refused> {
        let pattern = self.noise.pattern();
        if !pattern.has_keys() {
            return self.third_by_secret(message);
        }
        let payload =
            self.noise.read::<THIRD_PAYLOAD>(Message::Third, message, pattern.third_len())?;
        let Some(key) = self.noise.peer_key() else {
            return Err(malformed("there is no public key").into());
        };
        let keys = self.noise.session();
        if let Err(why) = self.security.trust().remember(key, from) {
            return Err(Refused { why, keys: Some(Box::new(keys)) });
        }
        let private = unpack(payload.as_slice())?;
        Ok(Established { keys, peer: PeerIdentity::Key(key), private })
    }

    /// Opens the third message of a handshake that has two messages in Noise.
    fn third_by_secret(self, message: &[u8]) -> Result<Established, Refused> {
        let pattern = self.noise.pattern();
        let (found, needed) = (message.len(), pattern.third_len());
        let short = HandshakeError::Short { message: Message::Third, found, needed, pattern };
        let message = message.get(..needed).ok_or(short)?;
        let mut keys = self.noise.session();
        let payload = keys.control().open(THIRD_KIND, message);
        let payload = payload.ok_or(HandshakeError::Altered { message: Message::Third })?;
        let private = unpack(&payload)?;
        Ok(Established { keys, peer: PeerIdentity::Secret, private })
    }
}

/// Returns the private data of the third message's payload.
fn unpack(payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
    let (length, rest) = payload.split_first().ok_or(malformed("the payload is empty"))?;
    let length = usize::from(*length);
    match rest.get(..length) {
        Some(private) if length <= MOST_PRIVATE => Ok(private.to_vec()),
        Some(_) | None => Err(malformed("the private data are longer than the message")),
    }
}

fn malformed(why: &'static str) -> HandshakeError {
    HandshakeError::Malformed { message: Message::Third, why }
}
