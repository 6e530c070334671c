//! The derivation of keys from secrets by HKDF with SHA-256 (RFC 5869).

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroizing;

/// A secret of 32 bytes, which is overwritten with zeros when it is dropped.
pub(crate) type Secret32 = Zeroizing<[u8; 32]>;

/// The length of a derived key in bytes, as HKDF's interface asks for it.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives a key of `N` bytes from a uniformly random secret. The label is the concatenation of
/// `label`, and keys with different labels say nothing about each other.
pub(crate) fn expand<const N: usize>(secret: &[u8; 32], label: &[&str]) -> Zeroizing<[u8; N]> {
    expand_prk(&Prk::new_less_safe(HKDF_SHA256, secret), label)
}

/// Derives a key of 32 bytes from a secret whose bits are not uniformly random, such as one that an
/// operator wrote to a file.
pub(crate) fn extract(salt: &[u8], secret: &[u8], label: &[&str]) -> Secret32 {
    expand_prk(&Salt::new(HKDF_SHA256, salt).extract(secret), label)
}

fn expand_prk<const N: usize>(prk: &Prk, label: &[&str]) -> Zeroizing<[u8; N]> {
    let label: Vec<&[u8]> = label.iter().map(|part| part.as_bytes()).collect();
    let mut key = Zeroizing::new([0; N]);
    prk.expand(&label, Length(N))
        .and_then(|okm| okm.fill(key.as_mut_slice()))
        .expect("HKDF-SHA256 gives up to 8,160 bytes, and no key here is longer");
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_labels_and_secrets_differ() {
        let key = |secret: u8, label: &str| *expand::<32>(&[secret; 32], &[label]);
        assert_eq!(key(1, "a"), key(1, "a"));
        assert_ne!(key(1, "a"), key(1, "b"));
        assert_ne!(key(1, "a"), key(2, "a"));
        assert_ne!(extract(b"x", b"secret", &["a"]), extract(b"y", b"secret", &["a"]));
    }
}
