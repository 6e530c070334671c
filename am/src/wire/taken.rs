//! What messages prove beside what they say.
//!
//! Each message says how many of the other's its sender has taken. So where endpoints answer each
//! other nothing has to be acknowledged by packets of their own: an answer says it all.

/// How many messages a peer has taken in all, in few bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Taken(pub u16);

impl Taken {
    pub const BITS: u32 = 11;
    const MASK: u16 = (1 << Self::BITS) - 1;

    #[inline]
    pub fn of(count: u16) -> Self {
        Self(count & Self::MASK)
    }

    /// How many more these are than those.
    #[inline]
    pub fn beyond(self, before: Self) -> u16 {
        self.0.wrapping_sub(before.0) & Self::MASK
    }

    /// The most credits with which a number can't have come round before it is used. While a
    /// message is on its way its reader sends no more than its own requests and answers to those of
    /// the other, for what would let it send more comes behind that message; and as many again
    /// until it is used, or another message comes.
    pub const MOST_CREDITS: usize = 1 << (Self::BITS - 3);
}
