//! The ICRC of a packet, and what it covers of the BTH.

use crate::wire::Bth;

/// The length of a packet's ICRC in bytes.
pub const ICRC_LEN: usize = 4;

/// The number of bytes of the BTH that a remembered CRC covers: all but the last word, which has
/// the sequence number.
pub(super) const STEADY_BTH: usize = 8;

/// Returns the first eight bytes of a BTH as the ICRC covers them. The congestion bits and the
/// reserved bits beside them, which routers may set, count as ones.
#[inline]
pub(super) fn steady_bth(first: [u8; STEADY_BTH]) -> u64 {
    u64::from_le_bytes(first) | 0xFF << 32
}

const _: () = assert!(STEADY_BTH + 4 == Bth::LEN);
