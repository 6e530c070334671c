//! What stands around a transport packet: the outer headers and the ICRC.
//!
//! Three encapsulations carry the same packets:
//!
//! | | outer headers | ICRC | for |
//! |---|---|---|---|
//! | RoCE v2 | Ethernet, IPv4 or IPv6, UDP | yes | any network, segmentation offload |
//! | RoCE v1 | Ethernet, GRH | yes | one Ethernet, the shortest frames |
//! | [`shm_record`] | none | none | shared memory, where nothing can be damaged |
//!
//! Sending, a [`Path`] knows the outer headers to one peer, and a [`Run`] lays packets into a
//! frame: one, or many of one size back to back with the outer headers once in front, as
//! segmentation offload takes them; where there are only single ones, [`alone`] does it.
//! Receiving, an [`Opener`] takes a frame apart into packets whose ICRC held. Both remember how
//! far the CRC of the unchanging headers had come, so that a packet costs the CRC of its own
//! bytes only.
//!
//! The ICRC covers the outer headers but for what routers change on the way, and so each packet
//! of a run must be checked as it would travel alone: with its own lengths and, over IPv4, its own
//! identification. Segmentation numbers the packets upwards from the frame's. To a receiver that
//! is not shown it, as behind a UDP socket, [`IpIdRecovery`] says what it must have been.

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

/// The bytes of a packet's ICRC.
pub const ICRC_LEN: usize = 4;

/// How much of the BTH is taken into a remembered CRC: all but the last word, in which the
/// sequence number stands.
const STEADY_BTH: usize = 8;

/// The first eight bytes of a BTH as the ICRC sees them: the congestion bits and the reserved
/// ones beside them, which routers may set, count as ones.
#[inline]
fn steady_bth(first: [u8; STEADY_BTH]) -> u64 {
    u64::from_le_bytes(first) | 0xFF << 32
}

/// A CRC that has taken in the outer headers and the steady part of the BTH, and for which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Remembered {
    /// The length of the transport packet, ICRC included: the outer headers carry it.
    len: usize,
    bth: u64,
    crc: Crc,
}

impl Remembered {
    /// Fits no packet: none is this long.
    const NOTHING: Self = Self { len: usize::MAX, bth: 0, crc: Crc::NEW };

    /// Takes in `outer` around a packet of `len` bytes, and the steady part of its BTH.
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
