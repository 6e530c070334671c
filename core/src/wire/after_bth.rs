//! The part of a packet that follows its base transport header, wherever the packet arrived: in a
//! frame, or in shared memory.

use crate::payload::Payload;

use super::{Bth, Layout, Malformed, Packet};

/// The bytes that follow a base transport header: extended transport headers and payload.
pub trait AfterBth: Copy {
    /// The type of the payload.
    type Payload: Payload;

    /// Parses the extended transport headers of `layout`, and returns the packet.
    ///
    /// # Errors
    /// When the bytes do not have these headers.
    fn parse(self, bth: Bth, layout: Layout) -> Result<Packet<Self::Payload>, Malformed>;

    /// Splits off extended transport headers of `N` bytes. Returns them and the payload, if there
    /// are as many bytes.
    fn split<const N: usize>(self) -> Option<([u8; N], Self::Payload)>;
}

impl AfterBth for &[u8] {
    type Payload = Self;

    #[inline(always)]
    fn parse(self, bth: Bth, layout: Layout) -> Result<Packet<Self>, Malformed> {
        Packet::parse_as(bth, layout, self)
    }

    #[inline(always)]
    fn split<const N: usize>(self) -> Option<([u8; N], Self)> {
        let (headers, payload) = self.split_first_chunk()?;
        Some((*headers, payload))
    }
}
