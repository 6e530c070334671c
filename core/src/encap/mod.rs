//! Encapsulation: the outer headers and the ICRC around a transport packet.
//!
//! Three encapsulations carry the same packets:
//!
//! | | outer headers | ICRC | for |
//! |---|---|---|---|
//! | RoCE v2 | Ethernet, IPv4 or IPv6, UDP | yes | any network, segmentation offload |
//! | RoCE v1 | Ethernet, GRH | yes | one Ethernet, the shortest frames |
//! | [`shm_record`] | none | none | shared memory, where no packet can be damaged |
//!
//! When sending, a [`Path`] has the outer headers to one peer, and a [`Run`] encodes packets in a
//! frame: one packet, or many of one size back to back with the outer headers once in front, as
//! segmentation offload takes them. [`alone`] encodes a single packet. When receiving, an [`Opener`]
//! parses a frame into packets whose ICRC holds. Both remember the CRC of the headers that stay the
//! same, so a packet costs only the CRC of its own bytes.
//!
//! The ICRC covers the outer headers except the fields that routers change. So each packet of a run
//! is checked as if it travelled alone: with its own lengths and, over IPv4, its own identification.
//! Segmentation counts the identifications up from the frame's. For a receiver that does not see
//! identifications, such as the user of a UDP socket, [`IpIdRecovery`] recovers them.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod ip_id;
mod opener;
mod outer;
mod path;
mod run;
pub mod shm_record;

pub use ip_id::IpIdRecovery;
pub use opener::{Arrival, Opener};
pub use outer::{Host, Outer, Version};
pub use path::{Path, PathId};
pub use run::{Full, Run, Sealed, Segmentation, alone};

use crate::wire::{Bth, Crc};

/// The length of a packet's ICRC in bytes.
pub const ICRC_LEN: usize = 4;

/// The number of bytes of the BTH that a remembered CRC covers: all but the last word, which has
/// the sequence number.
const STEADY_BTH: usize = 8;

/// Returns the first eight bytes of a BTH as the ICRC covers them. The congestion bits and the
/// reserved bits beside them, which routers may set, count as ones.
#[inline]
fn steady_bth(first: [u8; STEADY_BTH]) -> u64 {
    u64::from_le_bytes(first) | 0xFF << 32
}

/// The CRC of outer headers and of the first eight bytes of the BTH, with the values that it is the
/// CRC of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CrcPrefix {
    /// The length of the transport packet with its ICRC, which the outer headers carry.
    len: usize,
    bth: u64,
    crc: Crc,
}

impl CrcPrefix {
    /// A value that fits no packet, since no packet is this long.
    const NONE: Self = Self { len: usize::MAX, bth: 0, crc: Crc::NEW };

    /// Computes the CRC of `outer` around a packet of `len` bytes, and of the first eight bytes of
    /// its BTH.
    #[cold]
    fn begin(outer: &Outer, len: usize, bth: u64) -> Self {
        let (covered, covered_len) = outer.covered(len);
        let covered = covered.get(..covered_len).unwrap_or(&covered);
        Self { len, bth, crc: Crc::NEW.update_short(covered).update_u64(bth) }
    }

    #[inline]
    fn fits(&self, len: usize, bth: u64) -> bool {
        self.len == len && self.bth == bth
    }
}

const _: () = assert!(STEADY_BTH + 4 == Bth::LEN);
