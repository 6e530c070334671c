//! Sealed messages that manage a connection: the answer to a handshake, and disconnects.

use std::fmt;

use doorbell_core::cipher::{Cipher, TAG_LEN};
use zeroize::Zeroizing;

use crate::aead::Suite;
use crate::aead::sealer::Sealer;

/// The bytes of the length at the beginning of a sealed message.
const LENGTH: usize = 2;

/// The bytes of the number of a sealed message.
const NUMBER: usize = 8;

/// What seals and opens the messages that manage a connection. The suite is always
/// ChaCha20-Poly1305.
///
/// | bytes | a sealed message |
/// |---|---|
/// | 0–1 | how many bytes follow; authenticated |
/// | 2–9 | number; authenticated |
/// | 10– | encrypted: the message |
/// | 16 behind these | tag |
///
/// A message says its own length, and padding may follow it. A message has a kind, which is
/// authenticated and is not part of the bytes: a message that was sealed as one kind does not open
/// as another. A message that comes again opens again, since messages that manage a connection are
/// repeated on purpose.
pub struct Control {
    sending: Sealer,
    receiving: Sealer,
    /// How many messages were sealed.
    sealed: u64,
}

impl Control {
    /// How many bytes a sealed message has more than the message itself.
    pub const OVERHEAD: usize = LENGTH + NUMBER + TAG_LEN;

    /// The most bytes of a message.
    pub const MOST: usize = u16::MAX as usize - NUMBER - TAG_LEN;

    pub(super) fn new(sending: &[u8; 32], receiving: &[u8; 32]) -> Self {
        let make =
            |secret: &[u8; 32]| Sealer::new(Suite::ChaCha20Poly1305, Zeroizing::new(*secret));
        Self { sending: make(sending), receiving: make(receiving), sealed: 0 }
    }

    /// Seals a message of some kind. A message that is repeated may be sealed once and sent several
    /// times. Programs choose kinds from 1 on: kind 0 is the third message of a handshake.
    ///
    /// # Panics
    /// If the message has more than [`Control::MOST`] bytes.
    pub fn seal(&mut self, kind: u8, bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() <= Self::MOST, "a control message of {} bytes", bytes.len());
        let number = self.sealed;
        self.sealed += 1;
        let length = (NUMBER + bytes.len() + TAG_LEN) as u16;
        let mut message = Vec::with_capacity(Self::OVERHEAD + bytes.len());
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(&number.to_be_bytes());
        message.extend_from_slice(bytes);
        let (_, encrypted) = message.split_at_mut(LENGTH + NUMBER);
        let tag = self.sending.seal(number, &clear(kind, length), encrypted);
        message.extend_from_slice(&tag);
        message
    }

    /// Opens a message that the peer has sealed as the kind given, and which padding may follow.
    /// Returns `None` if the peer has not sealed the message so.
    pub fn open(&self, kind: u8, message: &[u8]) -> Option<Vec<u8>> {
        let (length, rest) = message.split_first_chunk::<LENGTH>()?;
        let length = u16::from_be_bytes(*length);
        let (number, sealed) = rest.get(..usize::from(length))?.split_first_chunk::<NUMBER>()?;
        let mut bytes = vec![0; sealed.len().checked_sub(TAG_LEN)?];
        let number = u64::from_be_bytes(*number);
        let is_open = self.receiving.open(number, &clear(kind, length), sealed, &mut bytes);
        is_open.then_some(bytes)
    }
}

/// Returns what of a message is authenticated and not encrypted, apart from its number.
fn clear(kind: u8, length: u16) -> [u8; 3] {
    let [high, low] = length.to_be_bytes();
    [kind, high, low]
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Control, Control) {
        (Control::new(&[1; 32], &[2; 32]), Control::new(&[2; 32], &[1; 32]))
    }

    #[test]
    fn a_control_message_opens_at_the_peer_alone_with_padding_and_repeatedly() {
        let (mut one, other) = pair();
        for bytes in [&b""[..], b"x", &[7; 300]] {
            let mut message = one.seal(4, bytes);
            assert_eq!(message.len(), bytes.len() + Control::OVERHEAD);
            message.resize(message.len() + 40, 0);
            for _ in 0..2 {
                assert_eq!(other.open(4, &message).as_deref(), Some(bytes));
            }
            assert_eq!(one.open(4, &message), None, "a message does not open at its own sender");
        }
    }

    #[test]
    fn a_control_message_with_a_bit_flipped_or_cut_or_of_another_kind_does_not_open() {
        let (mut one, other) = pair();
        let message = one.seal(4, b"goodbye");
        for bit in 0..message.len() * 8 {
            let mut flipped = message.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped.resize(600, 0);
            assert_eq!(other.open(4, &flipped), None, "bit {bit}");
        }
        for len in 0..message.len() {
            assert_eq!(other.open(4, &message[..len]), None, "{len} bytes");
        }
        for kind in (0..=u8::MAX).filter(|&kind| kind != 4) {
            assert_eq!(other.open(kind, &message), None, "kind {kind}");
        }
    }

    #[test]
    fn no_two_control_messages_are_alike() {
        let (mut one, _) = pair();
        assert_ne!(one.seal(4, b"same"), one.seal(4, b"same"));
    }
}
