//! The CRC of what comes first in each packet of a path, which is the same again and again.

use super::outer::Outer;
use crate::wire::Crc;

/// The CRC of outer headers and of the first eight bytes of the BTH, with the values that it is the
/// CRC of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CrcPrefix {
    /// The length of the transport packet with its ICRC, which the outer headers carry.
    len: usize,
    bth: u64,
    pub crc: Crc,
}

impl CrcPrefix {
    /// A value that fits no packet, since no packet is this long.
    pub const NONE: Self = Self { len: usize::MAX, bth: 0, crc: Crc::NEW };

    /// Computes the CRC of `outer` around a packet of `len` bytes, and of the first eight bytes of
    /// its BTH.
    #[cold]
    pub fn begin(outer: &Outer, len: usize, bth: u64) -> Self {
        let (covered, covered_len) = outer.covered(len);
        let covered = covered.get(..covered_len).unwrap_or(&covered);
        Self { len, bth, crc: Crc::NEW.update_short(covered).update_u64(bth) }
    }

    #[inline]
    pub fn fits(&self, len: usize, bth: u64) -> bool {
        self.len == len && self.bth == bth
    }
}
