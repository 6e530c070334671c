//! The Ethernet II header.

use super::malformed::{Malformed, Part, split};
use super::numbers::{EtherType, Mac};

/// Destination, source and type: the 14 bytes in front of every frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ethernet {
    /// Where the frame goes.
    pub destination: Mac,
    /// Where it comes from.
    pub source: Mac,
    /// What follows.
    pub ethertype: EtherType,
}

impl Ethernet {
    /// Its length on the wire.
    pub const LEN: usize = 14;

    /// Reads the header in front of `frame`; the rest is what it carries.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Self::LEN }>(Part::Ethernet, frame)?;
        let header = Self {
            destination: Mac([h[0], h[1], h[2], h[3], h[4], h[5]]),
            source: Mac([h[6], h[7], h[8], h[9], h[10], h[11]]),
            ethertype: EtherType(u16::from_be_bytes([h[12], h[13]])),
        };
        Ok((header, rest))
    }

    /// The header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0..6].copy_from_slice(&self.destination.0);
        h[6..12].copy_from_slice(&self.source.0);
        h[12..14].copy_from_slice(&self.ethertype.0.to_be_bytes());
        h
    }
}
