//! Extensions of the protocol beyond the specification, and how two sides agree on them.
//!
//! A request offers extensions in the last sixteen bytes of its private data, and a reply says
//! which of them both sides will use in the last sixteen bytes of its own. A side that offers none
//! is a standard peer, and the reply to a standard peer never has these bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | the magic number `D0 0B E1 1F 8A 6C 3E 95` |
//! | 8–9 | the version, 1 |
//! | 10–11 | zero |
//! | 12–15 | a bit for each extension, the first extension in the lowest bit |
//!
//! Numbers are big-endian. Unknown bits are ignored, and so is an offer of another version, whose
//! sender counts as a standard peer. The application's own bytes, and the IP addressing in front of
//! them, have precedence: where they leave less than sixteen bytes, nothing is offered. So an offer
//! costs an application no room, but is sometimes missing.
//!
//! A request for a port that offers encryption has less room, since the handshake's first message
//! stands where the application's bytes would. Then the offer is its last eight bytes: `D0 0B E1 20`,
//! and the bits.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// A set of extensions of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extensions(u32);

impl Extensions {
    /// The empty set, with which a side behaves as a standard peer.
    pub const NONE: Self = Self(0);
    /// Writes that carry metadata for the receiver beside their data.
    pub const WRITE_WITH_METADATA: Self = Self(1);
    /// Receivers that keep what comes from beyond a missing packet, so that only this one is sent
    /// again.
    pub const SELECTIVE_REPEAT: Self = Self(2);
    /// Packets that are encrypted, with keys that follow from a handshake in which each side shows
    /// its own key.
    pub const ENCRYPTED_BY_KEYS: Self = Self(1 << 2);
    /// Packets that are encrypted, with keys that follow from a handshake in which each side shows
    /// its own key, and proves that it knows a secret that both share.
    pub const ENCRYPTED_BY_KEYS_AND_SECRET: Self = Self(1 << 3);
    /// Packets that are encrypted, with keys that follow from a handshake in which each side proves
    /// that it knows a secret that both share.
    pub const ENCRYPTED_BY_SECRET: Self = Self(1 << 4);
    /// The cipher AES-256-GCM.
    pub const AES_256_GCM: Self = Self(1 << 5);
    /// The cipher AES-128-GCM.
    pub const AES_128_GCM: Self = Self(1 << 6);
    /// The cipher ChaCha20-Poly1305.
    pub const CHACHA20_POLY1305: Self = Self(1 << 7);
    /// The ways to agree on keys for encrypted packets, of which a request offers one at most.
    pub const ENCRYPTED: Self = Self(7 << 2);
    /// The ways to agree on keys, and the ciphers.
    pub const ENCRYPTION: Self = Self(0x3F << 2);
    /// The set of all extensions that this version knows.
    pub const ALL: Self = Self(0xFF);
    /// The bytes of private data that an offer takes.
    pub(super) const OFFER_LEN: usize = 16;
    /// The bytes that it takes where there is no room for more beside a handshake.
    const SHORT_LEN: usize = 8;

    /// Whether the set includes all extensions of `others`.
    pub const fn include(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the set without some of its extensions.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether the packets are to be encrypted: the handshake's messages are in the private data
    /// then.
    pub const fn encrypt(self) -> bool {
        self.0 & Self::ENCRYPTED.0 != 0
    }

    /// Returns the bytes of the handshake's first message, which a request carries in place of the
    /// program's private data.
    pub const fn handshake_len(self) -> usize {
        match self.0 & Self::ENCRYPTED.0 {
            0 => 0,
            by if by == Self::ENCRYPTED_BY_KEYS.0 => 32,
            _ => 48,
        }
    }

    /// Returns the bits on the wire.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Extensions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Extensions {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::WRITE_WITH_METADATA, "write with metadata"),
            (Self::SELECTIVE_REPEAT, "selective repeat"),
            (Self::ENCRYPTED_BY_KEYS, "encrypted by keys"),
            (Self::ENCRYPTED_BY_KEYS_AND_SECRET, "encrypted by keys and a secret"),
            (Self::ENCRYPTED_BY_SECRET, "encrypted by a secret"),
            (Self::AES_256_GCM, "AES-256-GCM"),
            (Self::AES_128_GCM, "AES-128-GCM"),
            (Self::CHACHA20_POLY1305, "ChaCha20-Poly1305"),
        ];
        let given = names.iter().filter(|(bit, _)| self.include(*bit)).map(|(_, name)| name);
        f.debug_set().entries(given).finish()
    }
}

const LEN: usize = Extensions::OFFER_LEN;
const MAGIC: [u8; 8] = [0xD0, 0x0B, 0xE1, 0x1F, 0x8A, 0x6C, 0x3E, 0x95];
const VERSION: [u8; 4] = [0, 1, 0, 0];
/// The beginning of a short offer, behind which are the bits.
const SHORT_MAGIC: [u8; 4] = [0xD0, 0x0B, 0xE1, 0x20];

/// Writes an offer to the end of a message's private data, of which the application uses the first
/// `used` bytes. Returns the extensions that were offered: none where there is no room.
pub(super) fn offer(private: &mut [u8], used: usize, extensions: Extensions) -> Extensions {
    let Some(start) = private.len().checked_sub(LEN).filter(|&start| used <= start) else {
        return short_offer(private, used, extensions);
    };
    if !extensions.is_empty() {
        private[start..start + 8].copy_from_slice(&MAGIC);
        private[start + 8..start + 12].copy_from_slice(&VERSION);
        private[start + 12..].copy_from_slice(&extensions.0.to_be_bytes());
    }
    extensions
}

/// Writes an offer that includes encryption to the last eight bytes, where there is no room for more:
/// in a request for a port, beside IP addressing and a handshake.
fn short_offer(private: &mut [u8], used: usize, extensions: Extensions) -> Extensions {
    let start = private.len().checked_sub(Extensions::SHORT_LEN);
    let Some(start) = start.filter(|&start| used <= start && extensions.encrypt()) else {
        return Extensions::NONE;
    };
    private[start..start + 4].copy_from_slice(&SHORT_MAGIC);
    private[start + 4..].copy_from_slice(&extensions.0.to_be_bytes());
    extensions
}

/// Reads a short offer.
fn offered_shortly(private: &[u8]) -> Option<(Extensions, &[u8])> {
    let (application, offer) = private.split_last_chunk::<{ Extensions::SHORT_LEN }>()?;
    let (magic, bits) = offer.split_first_chunk()?;
    let extensions = Extensions(u32::from_be_bytes(*bits.first_chunk()?)) & Extensions::ALL;
    (*magic == SHORT_MAGIC && extensions.encrypt()).then_some((extensions, application))
}

/// Reads the offer at the end of private data. Returns the known extensions that are offered, and
/// the bytes that are the application's.
pub(super) fn offered(private: &[u8]) -> (Extensions, &[u8]) {
    if let Some(short) = offered_shortly(private) {
        return short;
    }
    let Some((application, [offer @ .., a, b, c, d])) = private.split_last_chunk::<LEN>() else {
        return (Extensions::NONE, private);
    };
    let (magic, version) = offer.split_at(MAGIC.len());
    if magic != MAGIC {
        return (Extensions::NONE, private);
    }
    let bits = Extensions(u32::from_be_bytes([*a, *b, *c, *d])) & Extensions::ALL;
    // The two zero bytes behind the version are not checked: a later version may use them.
    let known = if version[..2] == VERSION[..2] { bits } else { Extensions::NONE };
    (known, application)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: Extensions = Extensions::WRITE_WITH_METADATA;

    #[test]
    fn an_offer_stands_at_the_end_and_is_taken_off() {
        let mut private = [7; 92];
        assert_eq!(offer(&mut private, 76, METADATA), METADATA);
        let expected = [0xD0, 0x0B, 0xE1, 0x1F, 0x8A, 0x6C, 0x3E, 0x95, 0, 1, 0, 0, 0, 0, 0, 1];
        assert_eq!(private[76..], expected);
        assert_eq!(offered(&private), (METADATA, &[7; 76][..]));
    }

    #[test]
    fn the_applications_bytes_have_precedence() {
        for (room, used) in [(92, 77), (92, 92), (15, 0), (0, 0)] {
            let mut private = vec![7; room];
            assert_eq!(offer(&mut private, used, METADATA), Extensions::NONE);
            assert_eq!(private, vec![7; room]);
            assert_eq!(offered(&private), (Extensions::NONE, &private[..]));
        }
    }

    #[test]
    fn who_offers_nothing_sends_what_a_standard_peer_sends() {
        let mut private = [0; 92];
        assert_eq!(offer(&mut private, 0, Extensions::NONE), Extensions::NONE);
        assert_eq!(private, [0; 92]);
    }

    #[test]
    fn unknown_bits_are_ignored_and_another_version_is_no_offer() {
        let mut private = [0; 92];
        offer(&mut private, 0, METADATA);
        private[88..].fill(0xFF);
        private[86..88].fill(0xFF);
        assert_eq!(offered(&private).0, Extensions::ALL);
        private[85] = 2;
        assert_eq!(offered(&private), (Extensions::NONE, &[0; 76][..]));
        private[76] ^= 1;
        assert_eq!(offered(&private).1.len(), 92);
    }
}
