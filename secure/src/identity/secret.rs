//! The secret that the processes of a job or a cluster share.

use std::fmt;
use std::path::Path;

use super::error::IdentityError;
use super::files::{self, Others};
use crate::aead::kdf::{self, Secret32};

const WHAT: &str = "shared secret";

/// The fewest bytes of a secret.
const LEAST: usize = 16;

/// The most bytes of a file with a secret.
const MOST: u64 = 65_536;

/// A secret that the processes of a job or a cluster share. Whoever knows the secret is one of
/// them.
///
/// The secret should be drawn at random and not be a password: whoever records a handshake can try
/// passwords at leisure. What is kept in memory is a key that was derived from the secret, and it
/// is overwritten with zeros when it is dropped.
///
/// ```
/// use doorbell_secure::Secret;
///
/// let secret = Secret::new(b"kJ5oVw0yzmZbN2aTq8v1sQ==")?;
/// assert!(Secret::new(b"password").is_err());
/// # Ok::<(), doorbell_secure::IdentityError>(())
/// ```
pub struct Secret {
    psk: Secret32,
}

impl Secret {
    /// Makes a shared secret of at least 16 bytes.
    ///
    /// # Errors
    /// When the secret is shorter than 16 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, IdentityError> {
        if bytes.len() < LEAST {
            return Err(IdentityError::ShortSecret { found: bytes.len(), least: LEAST });
        }
        Ok(Self { psk: kdf::extract(b"doorbell", bytes, &["doorbell shared secret"]) })
    }

    /// Reads a shared secret from a file. The secret is all bytes of the file but one line break at
    /// its end.
    ///
    /// # Errors
    /// When the file can't be read, has fewer than 16 bytes, or may be used by others than its
    /// owner.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let bytes = files::read(WHAT, path.as_ref(), Others::MayNothing, MOST)?;
        let trimmed = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        Self::new(trimmed.strip_suffix(b"\r").unwrap_or(trimmed))
    }

    /// Makes a secret of a key for Noise, as published test vectors give it.
    #[cfg(test)]
    pub(crate) fn from_psk(psk: &[u8; 32]) -> Self {
        Self { psk: zeroize::Zeroizing::new(*psk) }
    }

    /// The key for Noise that was derived from the secret.
    pub(crate) fn psk(&self) -> &[u8; 32] {
        &self.psk
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}
