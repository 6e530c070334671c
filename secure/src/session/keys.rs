//! The keys that follow from a handshake.

use std::fmt::{self, Write};
use std::sync::Arc;

use doorbell_core::cipher::{Cipher, Keys};
use zeroize::Zeroizing;

use super::control::Control;
use crate::aead::kdf::{self, Secret32};
use crate::aead::{Suite, cipher};
use crate::identity::PublicKey;
use crate::identity::hex::Hex;

/// The identity that a peer has proved in a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PeerIdentity {
    /// The peer has the private key that belongs to this public key.
    Key(PublicKey),
    /// The peer knows the shared secret, like everybody else who does.
    Secret,
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key {key}"),
            Self::Secret => f.write_str("shared secret"),
        }
    }
}

/// The side of a handshake that a process is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Requester,
    Acceptor,
}

/// A secret for each direction.
struct Directions {
    /// The secret of what the requester sends.
    requester: Secret32,
    /// The secret of what the acceptor sends.
    acceptor: Secret32,
}

/// The keys that follow from a handshake: for packets, and for the messages that manage a
/// connection.
pub struct SessionKeys {
    role: Role,
    traffic: Directions,
    control: Control,
    control_secrets: Directions,
}

impl SessionKeys {
    /// Derives the keys from the two keys that Noise ends with, and from the hash of the handshake.
    pub(crate) fn derive(role: Role, split: &[u8; 64], hash: &[u8]) -> Self {
        let derive = |label| kdf::extract(hash, split, &["doorbell ", label]);
        let traffic = Directions {
            requester: derive("traffic requester"),
            acceptor: derive("traffic acceptor"),
        };
        let control_secrets = Directions {
            requester: derive("control requester"),
            acceptor: derive("control acceptor"),
        };
        let (sending, receiving) = in_order(role, &control_secrets);
        let control = Control::new(sending, receiving);
        Self { role, traffic, control, control_secrets }
    }

    /// Returns what seals and opens the messages that manage this connection.
    pub fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    /// Makes the keys of a connection's packets, and returns what seals and opens the messages that
    /// manage the connection.
    pub fn into_keys(self, suite: Suite) -> (Keys, Control) {
        let (sending, receiving, control) = self.into_ciphers(suite);
        (Keys::new(sending, receiving), control)
    }

    /// Makes the ciphers of what is sent and of what is received, and returns what seals and opens
    /// the messages that manage the connection.
    pub fn into_ciphers(self, suite: Suite) -> (Arc<dyn Cipher>, Arc<dyn Cipher>, Control) {
        let (sending, receiving) = in_order(self.role, &self.traffic);
        (cipher(suite, sending), cipher(suite, receiving), self.control)
    }

    /// Returns what seals and opens the messages that manage the connection, and drops the keys of
    /// its packets. A refused peer is told so by it.
    pub fn into_control(self) -> Control {
        self.control
    }

    /// Returns the secrets of this connection as four lines of text, for those who should decrypt a
    /// capture of its packets. Each line has a label, the name of the connection and 64 hexadecimal
    /// digits, like a key log of TLS. White space in the name becomes `_`.
    ///
    /// Whoever has these lines can read everything that the connection carries, and forge it.
    pub fn log_line(&self, connection: &str) -> Zeroizing<String> {
        let connection: String = connection
            .chars()
            .map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c })
            .collect();
        let secrets = [
            ("DOORBELL_TRAFFIC_REQUESTER", &self.traffic.requester),
            ("DOORBELL_TRAFFIC_ACCEPTOR", &self.traffic.acceptor),
            ("DOORBELL_CONTROL_REQUESTER", &self.control_secrets.requester),
            ("DOORBELL_CONTROL_ACCEPTOR", &self.control_secrets.acceptor),
        ];
        // With room for all lines from the start, the text is never moved, and leaves no copy
        // behind.
        let line_len = 26 + 1 + connection.len() + 1 + 64 + 1;
        let mut text = Zeroizing::new(String::with_capacity(secrets.len() * line_len));
        for (label, secret) in secrets {
            let _ = writeln!(*text, "{label} {connection} {}", Hex(&**secret));
        }
        text
    }
}

/// Returns the secrets of what a side sends, and of what it receives.
fn in_order(role: Role, secrets: &Directions) -> (&[u8; 32], &[u8; 32]) {
    match role {
        Role::Requester => (&secrets.requester, &secrets.acceptor),
        Role::Acceptor => (&secrets.acceptor, &secrets.requester),
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys").field("role", &self.role).finish_non_exhaustive()
    }
}
