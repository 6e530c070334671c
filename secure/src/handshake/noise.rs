//! The Noise handshake as the crate `snow` has it.

use std::fmt;

use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use crate::error::{HandshakeError, Message};
use crate::identity::PublicKey;
use crate::pattern::Pattern;
use crate::policy::Security;
use crate::session::{Role, SessionKeys};

/// The most bytes of a message of a handshake.
const MOST: usize = 256;

/// A Noise handshake that goes on.
pub(super) struct Noise {
    state: HandshakeState,
    pattern: Pattern,
    role: Role,
}

impl Noise {
    /// Begins a handshake. Both sides must give the same prologue.
    pub fn begin(security: &Security, prologue: &[u8], role: Role) -> Result<Self, HandshakeError> {
        Self::begin_with(security, prologue, role, None)
    }

    /// Begins a handshake, with a fixed ephemeral key if published test vectors give one.
    pub fn begin_with(
        security: &Security,
        prologue: &[u8],
        role: Role,
        ephemeral: Option<&[u8; 32]>,
    ) -> Result<Self, HandshakeError> {
        let pattern = security.pattern();
        let state = build(security, pattern, prologue, role, ephemeral)
            .map_err(|why| failed("beginning a handshake", &why))?;
        Ok(Self { state, pattern, role })
    }

    pub fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Writes the next message.
    pub fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let mut message = vec![0; MOST];
        let written = self.state.write_message(payload, &mut message);
        let len = written.map_err(|why| failed("writing a message of a handshake", &why))?;
        message.truncate(len);
        Ok(message)
    }

    /// Reads the next message, of which `N` bytes are the payload. The message has `len` bytes, and
    /// what follows is padding.
    pub fn read<const N: usize>(
        &mut self,
        message: Message,
        bytes: &[u8],
        len: usize,
    ) -> Result<Zeroizing<[u8; N]>, HandshakeError> {
        let (pattern, found) = (self.pattern, bytes.len());
        let short = HandshakeError::Short { message, found, needed: len, pattern };
        let bytes = bytes.get(..len).ok_or(short)?;
        let mut payload = Zeroizing::new([0; N]);
        match self.state.read_message(bytes, payload.as_mut_slice()) {
            Ok(read) if read == N => Ok(payload),
            Ok(_) => {
                Err(HandshakeError::Malformed { message, why: "the payload has another length" })
            }
            Err(_) if self.lacks_secret(message) => Err(HandshakeError::WrongSecret { message }),
            Err(_) => Err(HandshakeError::Altered { message }),
        }
    }

    /// Whether a message that can't be decrypted is one that needs the shared secret. In `XXpsk3`
    /// the secret protects what follows the peer's public key in the third message: if the public
    /// key could be decrypted, the secret is wrong.
    fn lacks_secret(&self, message: Message) -> bool {
        match self.pattern {
            Pattern::Xx => false,
            Pattern::XxPsk3 => message == Message::Third && self.peer_key().is_some(),
            Pattern::NnPsk0 => true,
        }
    }

    /// Returns the public key that the peer has sent and, once a message behind it was read, has
    /// proved to have.
    pub fn peer_key(&self) -> Option<PublicKey> {
        let bytes = self.state.get_remote_static()?;
        Some(PublicKey::from_bytes(bytes.try_into().ok()?))
    }

    #[cfg(test)]
    pub fn hash(&self) -> &[u8] {
        self.state.get_handshake_hash()
    }

    /// Returns the two keys that Noise ends with: one for what the requester sends, and one for
    /// what the acceptor sends. All messages must have been written and read.
    pub fn split(&mut self) -> Zeroizing<[u8; 64]> {
        debug_assert!(self.state.is_handshake_finished(), "the handshake still goes on");
        let (mut first, mut second) = self.state.dangerously_get_raw_split();
        let mut both = Zeroizing::new([0; 64]);
        for (to, from) in both.iter_mut().zip(first.iter().chain(&second)) {
            *to = *from;
        }
        first.zeroize();
        second.zeroize();
        both
    }

    /// Returns the keys that follow from a handshake, all messages of which were written and read.
    pub fn session(mut self) -> SessionKeys {
        let split = self.split();
        SessionKeys::derive(self.role, &split, self.state.get_handshake_hash())
    }
}

impl fmt::Debug for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Noise").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

fn build(
    security: &Security,
    pattern: Pattern,
    prologue: &[u8],
    role: Role,
    ephemeral: Option<&[u8; 32]>,
) -> Result<HandshakeState, snow::Error> {
    let mut builder = Builder::new(pattern.noise_name().parse()?).prologue(prologue)?;
    if let Some(key) = security.private_key() {
        builder = builder.local_private_key(key.bytes())?;
    }
    if let Some(secret) = security.secret() {
        builder = builder.psk(pattern.psk_place(), secret.psk())?;
    }
    if let Some(key) = ephemeral {
        builder = builder.fixed_ephemeral_key_for_testing_only(key);
    }
    match role {
        Role::Requester => builder.build_initiator(),
        Role::Acceptor => builder.build_responder(),
    }
}

fn failed(tried: &'static str, why: &snow::Error) -> HandshakeError {
    HandshakeError::Library { tried, why: why.to_string() }
}
