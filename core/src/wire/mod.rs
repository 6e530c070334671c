//! The wire format: the headers of packets, parsed and written in place.
//!
//! A header is a plain value. `parse` reads it from the front of some bytes and returns the rest;
//! `to_bytes` returns the bytes to put in front of a payload. Neither allocates or trusts a length,
//! and the error for bytes that can't be parsed is a [`Malformed`]. Every integer has a type of its
//! own ([`Psn`], [`Qpn`], [`Rkey`], …), and one table ([`Opcode::info`]) says what each opcode
//! means.
//!
//! ```
//! use doorbell_core::wire::{Bth, Extensions, Headers, Opcode, Packet, Psn, Qpn};
//!
//! let headers = Headers {
//!     bth: Bth::new(Opcode::RcSendOnly, Qpn::new(0x11), Psn::new(7)),
//!     extensions: Extensions::None,
//! };
//! let mut packet = headers.to_bytes()[..headers.len()].to_vec();
//! packet.extend_from_slice(b"ring");
//!
//! let read = Packet::parse(&packet)?;
//! assert_eq!(read.headers, headers);
//! assert_eq!(read.payload, b"ring");
//! # Ok::<(), doorbell_core::wire::Malformed>(())
//! ```
//!
//! The outer headers (Ethernet, IP, UDP, GRH) and the ICRC are put around a packet by
//! [`encap`](crate::encap).

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod addresses;
mod after_bth;
mod bth;
pub mod cm;
mod ethernet;
mod extensions;
mod integers;
mod ipv4;
mod ipv6;
mod malformed;
mod metadata;
mod numbers;
mod opcode;
mod packet;
mod path_mtu;
mod prediction;
mod report;
mod syndrome;
mod udp;

pub use crate::crc::Crc;
pub use addresses::{Gid, Mac, NotMac};
pub use after_bth::AfterBth;
pub use bth::Bth;
pub use ethernet::Ethernet;
pub use extensions::{Aeth, AtomicEth, Deth, Extensions, Layout, Reth};
pub use integers::NotNumber;
pub use ipv4::Ipv4;
pub use ipv6::{Grh, Ipv6};
pub use malformed::{Malformed, Part};
pub use metadata::{Metadata, MetadataTooLong};
pub use numbers::*;
pub use opcode::{Opcode, OpcodeInfo, Operation, PayloadRule, Position, Service};
pub use packet::{Headers, Packet, padding};
pub use path_mtu::{NotPathMtu, PathMtu};
pub use prediction::RawBth;
pub use report::Report;
pub use syndrome::{Credits, Nak, RnrTimer, Syndrome, Verdict};
pub use udp::Udp;

#[cfg(feature = "serde")]
pub(crate) use integers::serde_as_text;
pub(crate) use ipv4::{fold, sum_words};
pub(crate) use malformed::split;
pub(crate) use packet::without_padding;
pub(crate) use prediction::Prediction;
