//! The keys of a connection: what is sent is sealed with one, and what is received is opened with
//! the other.

use std::fmt;
use std::sync::Arc;

use super::algorithm::{Cipher, TAG_LEN};
use super::numbers::Number;
use super::receiving::{Receiving, Refused};
use super::sending::Sending;
use crate::wire::Bth;

/// The bytes that encryption adds to a packet, but for up to three of padding: a number, a tag, and
/// the opcode.
pub const OVERHEAD: usize = Number::LEN + TAG_LEN + 1;

/// The place of the first byte that is encrypted.
pub(crate) const ENCRYPTED_FROM: usize = Bth::LEN + Number::LEN;

/// The place in a BTH of the byte that switches may change, and that is not authenticated: it has the
/// congestion bits, and reserved ones.
const CHANGEABLE: usize = 4;

/// The keys of a connection.
pub struct Keys {
    sending: Sending,
    receiving: Receiving,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// Why an encrypted packet could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unopened {
    /// The packet is too short for a number, a tag and an opcode.
    #[error("an encrypted packet of {found} bytes behind its BTH, where {OVERHEAD} are the least")]
    Short {
        /// How many bytes there were.
        found: usize,
    },
    /// The packet is not what the peer sent.
    #[error("an encrypted packet that the peer has not sent so: it was forged, changed or moved")]
    NotAuthentic,
    /// The packet has come before.
    #[error("an encrypted packet that has come before, or is too old to tell")]
    CameBefore,
}

impl Keys {
    /// Makes the keys of a connection, given the first key of either direction. The keys must be this
    /// connection's alone.
    pub fn new(sending: Arc<dyn Cipher>, receiving: Arc<dyn Cipher>) -> Self {
        Self { sending: Sending::new(sending), receiving: Receiving::new(receiving) }
    }

    /// Seals a packet in place: `packet` has room for the BTH and the number, then what is to be
    /// encrypted, then room for the tag. Padding and ICRC are not among it.
    pub(crate) fn seal(&self, bth: &Bth, packet: &mut [u8]) {
        let Some((head, rest)) = packet.split_first_chunk_mut::<ENCRYPTED_FROM>() else { return };
        let Some((bytes, tag)) = rest.split_last_chunk_mut::<TAG_LEN>() else { return };
        let number = self.sending.number();
        let bth = bth.to_bytes();
        let (in_clear, counted) = head.split_at_mut(Bth::LEN);
        in_clear.copy_from_slice(&bth);
        counted.copy_from_slice(&number.to_bytes());
        *tag = self.sending.seal(number, &authenticated(bth), bytes);
    }

    /// Opens a packet, of which `behind` is what follows its BTH without padding, into `opened`.
    /// Returns the opcode that was encrypted, and the extension headers and the payload behind it.
    ///
    /// # Errors
    /// When the packet is not what the peer sent, or has come before.
    pub(crate) fn open<'o>(
        &mut self,
        bth: &Bth,
        behind: &[u8],
        opened: &'o mut [u8],
    ) -> Result<(u8, &'o [u8]), Unopened> {
        let short = Unopened::Short { found: behind.len() };
        let (number, sealed) = behind.split_first_chunk().ok_or(short)?;
        let len = sealed.len().checked_sub(TAG_LEN).filter(|&len| len > 0).ok_or(short)?;
        // What is longer than any packet was not sent by the peer.
        let opened = opened.get_mut(..len).ok_or(Unopened::NotAuthentic)?;
        let number = Number::from_bytes(*number);
        let clear = authenticated(bth.to_bytes());
        match self.receiving.open(number, &clear, sealed, opened) {
            Ok(()) => match opened.split_first() {
                Some((opcode, rest)) => Ok((*opcode, rest)),
                None => Err(short),
            },
            Err(Refused::NotAuthentic) => Err(Unopened::NotAuthentic),
            Err(Refused::CameBefore) => Err(Unopened::CameBefore),
        }
    }

    /// Goes on to the next key for what is sent. The peer follows as soon as it receives something
    /// that is sealed with it.
    pub fn renew(&mut self) {
        self.sending.renew();
    }

    /// Goes on to the next key if it is due.
    #[inline]
    pub(crate) fn renew_if_due(&mut self) {
        if self.sending.is_due() {
            self.renew();
        }
    }
}

/// Returns what of a BTH is authenticated.
fn authenticated(mut bth: [u8; Bth::LEN]) -> [u8; Bth::LEN] {
    bth[CHANGEABLE] = 0xFF;
    bth
}
