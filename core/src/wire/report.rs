//! Reports of what has come: an extension header of ours, in acknowledgements that name each packet.

use super::numbers::Psn;
use crate::fields::{be32, put};

/// What a receiver of packets says about them beside how far it has come. This is an extension of
/// ours, which follows the ACK header. Behind it, as the packet's payload, are bits: one for each
/// packet from beyond the missing one on, set if the packet has come and is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The packet that came last.
    pub newest: Psn,
    /// How long ago that packet had come when the acknowledgement left, in nanoseconds, or more
    /// than that if it is the greatest number.
    pub held: u32,
    /// How many of the packets that came a switch had marked as Congestion Experienced, modulo 2³².
    pub marked: u32,
    /// How many packets have come that had come before, modulo 256.
    pub repeated: u8,
}

impl Report {
    /// The length of the header on the wire.
    pub const LEN: usize = 12;
    /// The most bits that follow the header: so many packets beyond a missing one are kept at most.
    pub const MOST_BITS: usize = 1024;

    #[inline]
    pub(super) fn from_bytes(h: [u8; Self::LEN]) -> Self {
        Self {
            newest: Psn::new(be32::<0, _>(&h)),
            held: be32::<4, _>(&h),
            marked: be32::<8, _>(&h),
            repeated: h[0],
        }
    }

    #[inline]
    pub(super) fn emit(self, out: &mut [u8]) -> &mut [u8] {
        let newest = u32::from(self.repeated) << 24 | self.newest.get();
        let out = put(out, newest.to_be_bytes());
        put(put(out, self.held.to_be_bytes()), self.marked.to_be_bytes())
    }
}
