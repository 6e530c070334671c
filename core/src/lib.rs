//! Doorbell's protocol, without I/O, clock or randomness of its own.
//!
//! What stands today is what everything above inherits:
//!
//! * [`wire`]: the headers of InfiniBand transport packets and of what carries them, and the
//!   connection manager's messages. Values in, bytes out; bytes in, values or a reason out.
//! * [`encap`]: what stands around a packet in RoCE v1 and v2, and in shared memory. It knows what
//!   of the outer headers the ICRC covers, and lays packets back to back for segmentation offload.
//! * [`memory`]: the two kinds of memory that there are: a [`Region`](memory::Region), which peers
//!   may write at any time, and a [`Buf`](memory::Buf), which nobody else can.
//! * [`nic`]: the network adapter itself: packets and time in; packets, a time-out and completions
//!   out.
//! * [`cm`]: the connection manager, by which two ends meet and part: management datagrams and time
//!   in; datagrams, a time-out and events out.
//! * [`connect`]: what lies between those two: routes, and what was agreed upon as queue pairs must
//!   know it.
//! * [`common`]: what the NIC and the connection manager share: randomness from a seed, timers,
//!   process tags.
//! * [`payload`]: bytes that can be copied from and nothing else, which is how a packet's payload
//!   travels from a device to a region.
//! * [`pcap`]: capture files, read and written.
//!
//! Nothing here allocates in proportion to what a peer claims, and nothing received can panic. Three
//! folders have unsafe code, an operation a block and each with its reason: the rings between a
//! program and its NIC (`nic/ring`), what keeps a region's words and moves many of them
//! (`memory/sys`), and the CRC by the processor's carry-less multiplication (`crc/sys`).

#![deny(unsafe_code)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

pub mod cm;
pub mod common;
pub mod connect;
mod crc;
pub mod encap;
pub(crate) mod fields;
pub mod memory;
pub mod nic;
pub mod payload;
pub mod pcap;
pub mod pcapng;
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code, unreachable_pub))]
mod planted;
pub(crate) mod sync;
pub mod time;
pub mod wire;

#[cfg(feature = "planted-bugs")]
pub use planted::{Bug, Planted, plant};
