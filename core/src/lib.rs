//! Doorbell's protocol as state machines: a network adapter and a connection manager for RoCE, and
//! the memory that peers may write. The crate does no I/O, reads no clock, and has no randomness but
//! from a seed. Programs use it through `doorbell-verbs`; tests and simulators drive it directly.
//!
//! ```
//! use doorbell_core::memory::Region;
//! use doorbell_core::nic::{Config, Nic, QueuePairConfig, Rights, Seed};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut nic = Nic::new(Config::default(), Seed::from_number(1))?;
//! let domain = nic.domain();
//! let lent = nic.register(domain, Region::new(4096), Rights::REMOTE)?;
//! println!("peers may use {} bytes by the key {:?}", lent.len, lent.rkey);
//!
//! let (queue, mut completions) = nic.completion_queue(16)?;
//! let ends = nic.queue_pair(&QueuePairConfig::new(domain, queue))?;
//! println!("peers connect to queue pair {}", ends.qpn);
//! assert!(completions.poll().is_none()); // nothing was posted yet
//! # Ok(())
//! # }
//! ```
//!
//! The crate `doorbell-simulation` connects such NICs by a simulated network.
//!
//! # The modules
//!
//! From the top to the bottom. Each module imports modules below it, and none above.
//!
//! * [`connect`]: the link between the next two: routes to peers, and the settings of queue pairs that
//!   follow from a request and its reply.
//! * [`nic`]: the network adapter: packets and time go in; packets, a time-out and completions come
//!   out.
//! * [`cm`]: the connection manager, by which two sides establish and release a connection: management
//!   datagrams and time go in; datagrams, a time-out and events come out.
//! * [`common`]: what the NIC and the connection manager share: randomness from a seed, timers, process
//!   tags.
//! * [`encap`]: the encapsulation of packets in RoCE v1 and v2, and in shared memory, with the ICRC.
//!   It encodes packets back to back for segmentation offload.
//! * [`cipher`]: encrypted packets: their form, and the keys of a connection. The cipher itself is
//!   another crate's.
//! * [`pcap`] and [`pcapng`]: capture files.
//! * [`wire`]: the headers of InfiniBand transport packets and of the protocols that carry them, and
//!   the connection manager's messages. Values are encoded to bytes, and bytes are parsed to values or
//!   to an error.
//! * [`payload`]: bytes that can only be copied, which is how a packet's payload gets from a device to
//!   a region.
//! * [`memory`]: the two kinds of memory: a [`Region`](memory::Region), which peers may write at any
//!   time, and a [`Buf`](memory::Buf), which no peer can access.
//! * `crc`, `fields`, [`time`], `sync`: the CRC-32, access to header fields, points in time, atomics.
//!
//! Nothing here allocates in proportion to what a peer claims, and nothing that is received can cause
//! a panic. Three folders have unsafe code, one operation for each block and each with its reason: the
//! rings between a program and its NIC (`nic/ring`), the allocations of regions and copies of many
//! words (`memory/sys`), and the CRC by the processor's carry-less multiplication (`crc/sys`).
//!
//! # Features
//!
//! * `serde`: values that a program keeps in a file or sends to others can be serialised, such as
//!   rights, keys, addresses and counters.
//! * `planted-bugs`: bugs that tests of this workspace switch on, to show that they would find them.
//!   Programs leave it off.

#![deny(unsafe_code)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

pub mod cipher;
pub mod cm;
pub mod common;
pub mod connect;
mod counted;
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
