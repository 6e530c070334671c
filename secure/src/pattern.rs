//! The Noise patterns, and how long their messages are.

use std::fmt;

use doorbell_core::cipher::TAG_LEN;

use crate::session::Control;

/// The bytes of a public key for X25519.
const KEY: usize = 32;

/// The bytes of the digest of the terms.
pub(crate) const DIGEST: usize = 32;

/// The most bytes of the program's private data in the third message.
pub const MOST_PRIVATE: usize = 92;

/// The bytes of the third message's payload: a length, and private data padded with zeros.
pub(crate) const THIRD_PAYLOAD: usize = 1 + MOST_PRIVATE;

/// A Noise pattern: how the two sides of a handshake prove who they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// `XX`: each side proves that it has a private key, and learns the other's public key.
    Xx,
    /// `XXpsk3`: like `XX`, and each side proves that it knows a shared secret.
    XxPsk3,
    /// `NNpsk0`: each side proves that it knows a shared secret, and nothing else.
    NnPsk0,
}

impl Pattern {
    /// Returns the name of the Noise protocol with this pattern.
    pub const fn noise_name(self) -> &'static str {
        match self {
            Self::Xx => "Noise_XX_25519_ChaChaPoly_BLAKE2s",
            Self::XxPsk3 => "Noise_XXpsk3_25519_ChaChaPoly_BLAKE2s",
            Self::NnPsk0 => "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s",
        }
    }

    /// Returns how many bytes the first message has. The requester sends it.
    pub const fn first_len(self) -> usize {
        match self {
            Self::Xx => KEY,
            Self::XxPsk3 | Self::NnPsk0 => KEY + TAG_LEN,
        }
    }

    /// Returns how many bytes the second message has. The acceptor sends it.
    pub const fn second_len(self) -> usize {
        match self {
            Self::Xx | Self::XxPsk3 => KEY + KEY + TAG_LEN + DIGEST + TAG_LEN,
            Self::NnPsk0 => KEY + DIGEST + TAG_LEN,
        }
    }

    /// Returns how many bytes the third message has. The requester sends it.
    pub const fn third_len(self) -> usize {
        match self {
            Self::Xx | Self::XxPsk3 => KEY + TAG_LEN + THIRD_PAYLOAD + TAG_LEN,
            Self::NnPsk0 => THIRD_PAYLOAD + Control::OVERHEAD,
        }
    }

    /// Whether each side proves who it is by a private key.
    pub(crate) const fn has_keys(self) -> bool {
        matches!(self, Self::Xx | Self::XxPsk3)
    }

    /// The place of the shared secret in the pattern, as Noise counts places.
    pub(crate) const fn psk_place(self) -> u8 {
        match self {
            Self::XxPsk3 => 3,
            Self::Xx | Self::NnPsk0 => 0,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xx => "keys",
            Self::XxPsk3 => "keys and a shared secret",
            Self::NnPsk0 => "a shared secret",
        })
    }
}
