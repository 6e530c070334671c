//! Piggybacked acknowledgements.
//!
//! Each message says how many messages of the other side its sender has taken. So where endpoints
//! answer each other, the NIC needs no packets for acknowledgements.

/// A count of the messages that an endpoint has taken, modulo 2048.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Taken(pub u16);

impl Taken {
    /// The number of bits of a count.
    pub const BITS: u32 = 11;
    const MASK: u16 = (1 << Self::BITS) - 1;

    #[inline]
    pub fn of(count: u16) -> Self {
        Self(count & Self::MASK)
    }

    /// Returns by how many messages this count is ahead of an earlier one.
    #[inline]
    pub fn beyond(self, before: Self) -> u16 {
        self.0.wrapping_sub(before.0) & Self::MASK
    }

    /// The most credits with which a count can't have come round before it is used. While a message
    /// is on its way, its reader sends no more than its own requests and answers to those of the
    /// other side, since whatever would let it send more comes behind that message. It sends as
    /// many again until the count is used, or another message comes.
    pub const MOST_CREDITS: usize = 1 << (Self::BITS - 3);
}
