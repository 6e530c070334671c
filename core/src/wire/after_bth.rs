//! What stands behind a base transport header, where it arrived.

use crate::payload::Payload;

use super::{Bth, Layout, Malformed, Packet};

/// Other headers, if there are any, and the payload.
pub trait AfterBth: Copy {
    /// What the payload is.
    type Payload: Payload;

    /// The packet, if these are its other headers.
    ///
    /// # Errors
    /// When they are not.
    fn parse(self, bth: Bth, layout: Layout) -> Result<Packet<Self::Payload>, Malformed>;

    /// Other headers of so many bytes, and the payload, if there are as many.
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
