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

mod crc_prefix;
mod icrc;
mod ip_id;
mod opener;
mod outer;
mod path;
mod run;
pub mod shm_record;

pub use icrc::ICRC_LEN;
pub use ip_id::IpIdRecovery;
pub use opener::{Arrival, Opener};
pub use outer::{Host, Outer, Version};
pub use path::{Path, PathId};
pub use run::{Full, Run, Sealed, Segmentation, alone, frame_len};
