//! The reasons why a handshake fails.

use std::fmt;

use thiserror::Error;

use crate::identity::{IdentityError, PublicKey};
use crate::pattern::Pattern;
use crate::session::SessionKeys;

/// A message of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// The requester's first message.
    First,
    /// The acceptor's message.
    Second,
    /// The requester's second message, the third of the handshake.
    Third,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
        })
    }
}

/// The reason why a handshake failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// A message is too short.
    #[error(
        "the {message} message of the handshake has {found} bytes, and {needed} are needed where \
         peers prove themselves by {pattern}: does the peer use the same version of Doorbell?"
    )]
    Short {
        /// The message.
        message: Message,
        /// How many bytes came.
        found: usize,
        /// How many bytes the message has.
        needed: usize,
        /// The pattern of this process.
        pattern: Pattern,
    },
    /// A message can't be decrypted.
    #[error(
        "the {message} message of the handshake can't be decrypted: the message, or the request \
         that the handshake protects, was changed on its way. Connect again; if that fails too, \
         look for somebody between the two hosts"
    )]
    Altered {
        /// The message.
        message: Message,
    },
    /// A message was decrypted, and its content makes no sense.
    #[error(
        "the {message} message of the handshake was decrypted, and makes no sense ({why}): does \
         the peer use the same version of Doorbell?"
    )]
    Malformed {
        /// The message.
        message: Message,
        /// The fault of the message's content.
        why: &'static str,
    },
    /// The peer does not know the shared secret of this process.
    #[error(
        "the {message} message of the handshake can't be decrypted with the shared secret: the \
         peer has another secret, or the message or the request was changed on its way. Compare \
         the files with the secret on both hosts"
    )]
    WrongSecret {
        /// The message.
        message: Message,
    },
    /// The peer has a key that is not allowed.
    #[error(
        "the peer at {from} has proved that it has the key {key}, which is not allowed: if the \
         peer should be, add its key to {place}"
    )]
    UnknownKey {
        /// The address of the peer.
        from: String,
        /// The public key of the peer.
        key: PublicKey,
        /// Where keys are allowed.
        place: String,
    },
    /// The peer has another key than before.
    #[error(
        "the peer at {from} has proved that it has the key {key}, and it had {known} before: \
         somebody else may answer at that address. If the peer has a new key on purpose, {remedy}"
    )]
    ChangedKey {
        /// The address of the peer.
        from: String,
        /// The key that the peer had at first.
        known: PublicKey,
        /// The key that the peer has now.
        key: PublicKey,
        /// The advice: how an operator has the first key forgotten.
        remedy: String,
    },
    /// The key of a new peer can't be remembered.
    #[error("the key of a peer that was not known before can't be remembered: {0}")]
    Unremembered(Box<IdentityError>),
    /// The terms of the acceptor's reply are not those that the acceptor has sent.
    #[error(
        "the terms of the reply were changed on their way: the acceptor has sent others than have \
         come. Connect again; if that fails too, look for somebody between the two hosts"
    )]
    TermsChanged,
    /// The program's private data are too long for the third message.
    #[error("{found} bytes of private data for a handshake, and {most} are the most")]
    PrivateTooLong {
        /// How many bytes the private data have.
        found: usize,
        /// The most bytes of private data.
        most: usize,
    },
    /// The Noise library could not do its part.
    #[error("{tried}: the Noise library failed ({why})")]
    Library {
        /// What was tried.
        tried: &'static str,
        /// The error as the Noise library describes it.
        why: String,
    },
}

impl From<IdentityError> for HandshakeError {
    fn from(why: IdentityError) -> Self {
        Self::Unremembered(Box::new(why))
    }
}

/// A refusal by the acceptor, which has read the third message.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused {
    /// Why the peer is refused.
    pub why: HandshakeError,
    /// The keys by which the refusal can be sealed. They are there if the peer has proved that it
    /// has its key, and is not trusted. Without keys, the refusal can only be sent unsealed.
    pub keys: Option<Box<SessionKeys>>,
}

impl From<HandshakeError> for Refused {
    fn from(why: HandshakeError) -> Self {
        Self { why, keys: None }
    }
}
