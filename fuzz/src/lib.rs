//! What every parser promises for every input, and the NIC and the connection manager, as plain
//! functions over bytes.
//!
//! Each body takes arbitrary bytes, gives them to one parser or takes them for what happens to a
//! NIC or to connection managers, and panics when what comes back breaks a promise. The targets in
//! `fuzz_targets` feed them from libFuzzer; `cargo test` feeds them recorded frames and mutations
//! of those (`core/tests/seam/fuzz_bodies.rs`).
//!
//! No parser allocates at all: what it returns borrows from the input or is of fixed size. So
//! nothing grows with a length that a peer claims, by construction: it needs no check beside that
//! of the slices, which must lie within the input.

#![forbid(unsafe_code)]

mod capture;
mod check;
mod connections;
mod frames;
mod headers;
mod input;
mod management;
mod nic;
mod run;
mod shm_record;

pub use capture::pcap;
pub use connections::cm;
pub use frames::{opener, outer};
pub use headers::{ethernet, ip, packet, udp};
pub use management::{ip_cm, mad};
pub use nic::nic;
pub use run::run;
pub use shm_record::shm_record;
