//! The Ethernet II header.

use super::addresses::Mac;
use super::malformed::{Malformed, Part, split};
use super::numbers::EtherType;

/// The Ethernet II header: the 14 bytes in front of every frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ethernet {
    /// The address that the frame is sent to.
    pub destination: Mac,
    /// The address of the frame's sender.
    pub source: Mac,
    /// The type of what the frame carries.
    pub ethertype: EtherType,
}

impl Ethernet {
    /// The length of the header on the wire.
    pub const LEN: usize = 14;

    /// Parses the header in front of `frame`. Returns the header and the rest of the frame.
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

    /// Returns the header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0..6].copy_from_slice(&self.destination.0);
        h[6..12].copy_from_slice(&self.source.0);
        h[12..14].copy_from_slice(&self.ethertype.0.to_be_bytes());
        h
    }
}
