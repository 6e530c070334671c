//! The side of a handshake that asks for a connection.

use zeroize::Zeroizing;

use super::noise::Noise;
use super::{THIRD_KIND, digest};
use crate::error::{HandshakeError, Message};
use crate::pattern::{DIGEST, MOST_PRIVATE, THIRD_PAYLOAD};
use crate::policy::Security;
use crate::session::{PeerIdentity, Role, SessionKeys};

/// A requester that has sent the first message of a handshake.
#[derive(Debug)]
pub struct Requester {
    noise: Noise,
    security: Security,
}

impl Requester {
    /// Begins the handshake of a connection that this process requests. Returns the first message, of [`Pattern::first_len`] bytes.
    ///
    /// The prologue is what the request has in clear: the acceptor must give the same bytes.
    ///
    /// # Errors
    /// When the operating system gives no random numbers.
    ///
    /// [`Pattern::first_len`]: crate::Pattern::first_len
    pub fn begin(security: &Security, prologue: &[u8]) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut noise = Noise::begin(security, prologue, Role::Requester)?;
        let first = noise.write(&[])?;
        Ok((Self { noise, security: security.clone() }, first))
    }

    /// Reads the acceptor's message, which padding may follow. The terms are everything that the
    /// acceptor's reply settles in clear. `from` is the address of the acceptor, by which
    /// [`Trust::FirstUse`](crate::Trust::FirstUse) knows it.
    ///
    /// # Errors
    /// When the message or the terms were changed on their way, when the acceptor does not know the
    /// shared secret, or when its key is not trusted.
    pub fn second(
        mut self,
        message: &[u8],
        terms: &[u8],
        from: &str,
    ) -> Result<Confirming, HandshakeError> {
        let pattern = self.noise.pattern();
        let their_digest =
            self.noise.read::<DIGEST>(Message::Second, message, pattern.second_len())?;
        if *their_digest != digest(terms) {
            return Err(HandshakeError::TermsChanged);
        }
        let peer = match self.noise.peer_key() {
            Some(key) => {
                self.security.trust().check(key, from)?;
                PeerIdentity::Key(key)
            }
            None => PeerIdentity::Secret,
        };
        Ok(Confirming { noise: self.noise, peer })
    }
}

/// A requester that has read the acceptor's message.
#[derive(Debug)]
pub struct Confirming {
    noise: Noise,
    peer: PeerIdentity,
}

impl Confirming {
    /// Returns what the acceptor has proved. With [`Pattern::XxPsk3`](crate::Pattern::XxPsk3) it
    /// has proved so far that it has its key. That it knows the shared secret, its sealed answer to
    /// the third message will prove.
    pub fn peer(&self) -> PeerIdentity {
        self.peer
    }

    /// Ends the handshake. Returns the third message, of [`Pattern::third_len`] bytes, and the keys
    /// of the session.
    ///
    /// The acceptor's sealed answer tells whether it has accepted. When the answer has come, and
    /// the requester trusts on first use, it calls [`Security::remember`].
    ///
    /// # Errors
    /// When the private data have more than [`MOST_PRIVATE`] bytes.
    ///
    /// [`Pattern::third_len`]: crate::Pattern::third_len
    pub fn third(mut self, private: &[u8]) -> Result<(Vec<u8>, SessionKeys), HandshakeError> {
        let payload = pack(private)?;
        if self.noise.pattern().has_keys() {
            let message = self.noise.write(payload.as_slice())?;
            return Ok((message, self.noise.session()));
        }
        let mut keys = self.noise.session();
        let message = keys.control().seal(THIRD_KIND, payload.as_slice());
        Ok((message, keys))
    }
}

/// Returns the payload of the third message: the length of the private data, the private data, and
/// zeros.
fn pack(private: &[u8]) -> Result<Zeroizing<[u8; THIRD_PAYLOAD]>, HandshakeError> {
    let found = private.len();
    let too_long = || HandshakeError::PrivateTooLong { found, most: MOST_PRIVATE };
    let mut payload = Zeroizing::new([0; THIRD_PAYLOAD]);
    if let Some((length, room)) = payload.split_first_mut() {
        room.get_mut(..found).ok_or_else(too_long)?.copy_from_slice(private);
        *length = u8::try_from(found).map_err(|_| too_long())?;
    }
    Ok(payload)
}
