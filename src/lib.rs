//! InfiniBand verbs, Active Messages and Split-C for Tokio, over any Ethernet.
//!
//! This crate is the whole of Doorbell under one name. Today that is its foundation,
//! [`doorbell_core`]: RoCE on the wire, and memory that peers may write.
//!
//! * [`wire`]: every header of a RoCE packet and every message of the connection manager, read and
//!   written in place.
//! * [`encap`]: the outer headers and the ICRC of RoCE v1 and v2, alone or in runs for
//!   segmentation offload, and bare packets for shared memory.
//! * [`memory`]: regions that several may write at once, soundly, and buffers that nobody else may.
//! * [`cm`]: the connection manager, by which two ends meet and part.
//! * [`connect`]: what its terms mean for a NIC's queue pairs.
//! * [`payload`]: bytes that can only be copied from.
//! * [`pcap`]: capture files.
//!
//! ```
//! use doorbell::encap::Opener;
//! use doorbell::pcap::Reader;
//!
//! # let file = include_bytes!("../tests/captures/rping.pcap");
//! let mut opener = Opener::default();
//! let mut opcodes = Vec::new();
//! for record in Reader::new(file)? {
//!     // Packets whose ICRC does not hold are errors here.
//!     for packet in opener.open(record?.data, None)? {
//!         opcodes.push(packet?.headers.bth.opcode());
//!     }
//! }
//! assert_eq!(opcodes.len(), 29);
//! # Ok::<(), doorbell::wire::Malformed>(())
//! ```

#![forbid(unsafe_code)]

pub use doorbell_core::{cm, connect, encap, memory, nic, payload, pcap, time, wire};

/// The README's example is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
