//! The cipher of one direction of a connection, made from a secret.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use doorbell_core::cipher::{Cipher, TAG_LEN};
use zeroize::Zeroizing;

use super::kdf::{self, Secret32};
use super::suite::Suite;

/// Makes the cipher of one direction of a connection from a secret of uniformly random bytes. The
/// secret must be used for this direction of this connection alone.
///
/// The key and the IV are derived from the secret by HKDF-SHA256. The nonce of a packet is the IV
/// XOR its number, as in TLS 1.3 (RFC 8446, section 5.3).
///
/// ```
/// use doorbell_secure::{Suite, cipher};
///
/// let sending = cipher(Suite::ChaCha20Poly1305, &[7; 32]);
/// let mut bytes = *b"payload";
/// let tag = sending.seal(0, b"header", &mut bytes);
///
/// let receiving = cipher(Suite::ChaCha20Poly1305, &[7; 32]);
/// let sealed = [&bytes[..], &tag[..]].concat();
/// let mut opened = [0; 7];
/// assert!(receiving.open(0, b"header", &sealed, &mut opened));
/// assert_eq!(&opened, b"payload");
/// ```
pub fn cipher(suite: Suite, secret: &[u8; 32]) -> Arc<dyn Cipher> {
    Arc::new(Sealer::new(suite, Zeroizing::new(*secret)))
}

/// An AEAD key with its IV, and the secret that both were derived from.
pub(crate) struct Sealer {
    suite: Suite,
    key: LessSafeKey,
    iv: Zeroizing<[u8; NONCE_LEN]>,
    secret: Secret32,
}

impl Sealer {
    pub fn new(suite: Suite, secret: Secret32) -> Self {
        let key = kdf::expand::<32>(&secret, &["doorbell key ", suite.name()]);
        let iv = kdf::expand::<NONCE_LEN>(&secret, &["doorbell iv ", suite.name()]);
        let len = suite.algorithm().key_len();
        Self::from_parts(suite, key.get(..len).unwrap_or_default(), *iv, secret)
    }

    /// Makes a cipher from a key and an IV, where published test vectors give these.
    ///
    /// # Panics
    /// If the key has not the length that the suite needs.
    pub fn from_parts(suite: Suite, key: &[u8], iv: [u8; NONCE_LEN], secret: Secret32) -> Self {
        let key = UnboundKey::new(suite.algorithm(), key).expect("the key has the suite's length");
        Self { suite, key: LessSafeKey::new(key), iv: Zeroizing::new(iv), secret }
    }

    /// Returns the nonce of a number: the IV, the last 64 bits of which are XORed with the number.
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = *self.iv;
        if let Some(last) = nonce.last_chunk_mut() {
            *last = (u64::from_be_bytes(*last) ^ number).to_be_bytes();
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl Cipher for Sealer {
    fn seal(&self, number: u64, clear: &[u8], bytes: &mut [u8]) -> [u8; TAG_LEN] {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(clear), bytes)
            .expect("an AEAD encrypts any slice of less than 64 gigabytes");
        tag.as_ref().try_into().expect("the tags of all suites have 16 bytes")
    }

    fn open(&self, number: u64, clear: &[u8], sealed: &[u8], bytes: &mut [u8]) -> bool {
        let Some((encrypted, tag)) = sealed.split_last_chunk::<TAG_LEN>() else { return false };
        if encrypted.len() != bytes.len() {
            return false;
        }
        let (nonce, clear) = (self.nonce(number), Aad::from(clear));
        self.key.open_separate_gather(nonce, clear, encrypted, tag, bytes).is_ok()
    }

    fn next(&self) -> Arc<dyn Cipher> {
        let secret = kdf::expand(&self.secret, &["doorbell next"]);
        Arc::new(Self::new(self.suite, secret))
    }

    fn most_packets(&self) -> u64 {
        self.suite.most_packets()
    }
}
