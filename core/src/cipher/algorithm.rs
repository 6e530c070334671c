//! What a cipher does.

use std::fmt;
use std::sync::Arc;

/// The bytes of a tag, by which a packet is known to be what the peer sent.
pub const TAG_LEN: usize = 16;

/// The key of one direction of a connection, for authenticated encryption with associated data
/// (AEAD).
pub trait Cipher: fmt::Debug + Send + Sync {
    /// Encrypts `bytes` in place, and returns the tag of these and of `clear`, which is not
    /// encrypted. No number is used twice with the same key.
    fn seal(&self, number: u64, clear: &[u8], bytes: &mut [u8]) -> [u8; TAG_LEN];

    /// Decrypts `sealed`, which ends with its tag, into `bytes`, which is shorter by the tag. Returns
    /// whether it and `clear` are what was sealed under this number; if not, what is left in `bytes`
    /// means nothing.
    fn open(&self, number: u64, clear: &[u8], sealed: &[u8], bytes: &mut [u8]) -> bool;

    /// Returns the key that follows this one. Whoever learns that one can't tell this one from it.
    fn next(&self) -> Arc<dyn Cipher>;

    /// Returns how many packets may be sealed with one key before the next one is due.
    fn most_packets(&self) -> u64;
}
