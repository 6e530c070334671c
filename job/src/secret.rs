//! The secret of a job: whether it can be a random one, and the key that follows from it.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::error::JobError;

/// The fewest characters of a secret: as hexadecimal digits, they stand for 64 bits.
const LEAST: usize = 16;

/// Returns the secret that a variable or a file has, unless it is too short to be a random one.
/// Whoever gets a proof that somebody knows the secret can try all short ones.
pub(crate) fn checked(text: &str, from: String) -> Result<Vec<u8>, JobError> {
    let text = text.trim();
    let found = text.chars().count();
    if found < LEAST {
        return Err(JobError::WeakSecret { from, found, least: LEAST });
    }
    Ok(text.as_bytes().to_vec())
}

/// Derives the number that all processes of one run of a job have, and that others can't guess
/// unless they know the secret. It says nothing about the secret, or about proofs that somebody
/// knows it.
pub(crate) fn key_of(secret: &[u8], run: &str) -> u64 {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    let mac = mac.chain_update(b"doorbell job: the key of its world").chain_update(run);
    let bytes: [u8; 32] = mac.finalize().into_bytes().into();
    let [a, b, c, d, e, f, g, h, ..] = bytes;
    // Zero would be no key.
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_too_short_to_be_random_is_refused_and_not_shown() {
        for weak in ["s3cr3t", "  fifteen letters ", "ääääääää"] {
            let why = checked(weak, "DOORBELL_SECRET".to_owned()).expect_err("it is weak");
            let text = why.to_string();
            assert!(text.contains("DOORBELL_SECRET") && text.contains("/dev/urandom"), "{text}");
            assert!(!text.contains(weak.trim()), "{text}");
        }
        let drawn = checked(" 0123456789abcdef\n", String::new()).expect("it is long enough");
        assert_eq!(drawn, b"0123456789abcdef");
    }

    #[test]
    fn secrets_and_runs_that_differ_give_keys_that_differ() {
        assert_eq!(key_of(b"0123456789abcdef", "a"), key_of(b"0123456789abcdef", "a"));
        assert_ne!(key_of(b"0123456789abcdef", "a"), key_of(b"0123456789abcdeg", "a"));
        assert_ne!(key_of(b"0123456789abcdef", "a"), key_of(b"0123456789abcdef", "b"));
    }
}
