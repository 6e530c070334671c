//! The keys of what is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::algorithm::{Cipher, TAG_LEN};
use super::numbers::Number;

/// The key of what is sent, and how many packets were sealed with it.
#[derive(Debug)]
pub(super) struct Sending {
    cipher: Arc<dyn Cipher>,
    key: u16,
    /// How many packets were sealed with the key. Packets are sealed through a shared reference, and
    /// no number may be used twice, whoever holds another.
    sealed: AtomicU64,
}

impl Sending {
    pub fn new(cipher: Arc<dyn Cipher>) -> Self {
        Self { cipher, key: 0, sealed: AtomicU64::new(0) }
    }

    /// Draws the number of the next packet.
    pub fn number(&self) -> Number {
        Number::new(self.key, self.sealed.fetch_add(1, Ordering::Relaxed))
    }

    /// Encrypts a packet's bytes in place.
    pub fn seal(&self, number: Number, clear: &[u8], bytes: &mut [u8]) -> [u8; TAG_LEN] {
        self.cipher.seal(number.get(), clear, bytes)
    }

    /// Goes on to the next key.
    pub fn renew(&mut self) {
        *self = Self {
            cipher: self.cipher.next(),
            key: self.key.wrapping_add(1),
            sealed: AtomicU64::new(0),
        };
    }

    /// Whether the next key is due, since as many packets were sealed with this one as may be.
    pub fn is_due(&self) -> bool {
        self.sealed.load(Ordering::Relaxed) >= self.cipher.most_packets()
    }
}
