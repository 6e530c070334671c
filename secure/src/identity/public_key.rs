//! The public key by which a process is known.

use std::fmt;
use std::str::FromStr;

use super::error::IdentityError;
use super::hex::{self, Hex};

/// The most characters of a text that an error shows.
const SHOWN: usize = 80;

/// The public key of a process, for X25519. It is written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Makes a public key of its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of this public key.
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let bytes = hex::decode(text).ok_or_else(|| IdentityError::NotAPublicKey {
            found: text.chars().take(SHOWN).flat_map(char::escape_debug).collect(),
        })?;
        Ok(Self(*bytes))
    }
}
