//! The tools with which Doorbell is tested.
//!
//! A [`lab`] of namespaces and cables, a [`Forger`] of packets in the names of other hosts,
//! [processes](child) that play another part of a test, also as [another user](stranger) of the
//! machine, a [`Rig`] of a NIC over a device, [a suite of tests for every
//! device](mod@conformance), and a [browser] for reports.
//!
//! The simulated Ethernet, on which most tests of NICs and programs run, is the crate
//! [`doorbell_simulation`].

#![deny(unsafe_code)]
#![allow(missing_debug_implementations, reason = "what tests are made of is not printed")]

pub mod browser;
pub mod child;
pub mod conformance;
mod forger;
mod helpers;
pub mod judges;
pub mod lab;
mod lab_error;
mod namespace;
mod rig;
pub mod stranger;
#[allow(unsafe_code)]
mod sys;
mod udp_sockets;

pub use forger::{Bounce, Forger};
pub use helpers::allocator::Allocated;
pub use helpers::cancellation::abandoned;
pub use helpers::effort::{effort, is_thorough};
pub use helpers::error_chain::chain;
pub use helpers::fuzz_inputs::{try_body, try_inputs, try_mutations};
pub use rig::{PATIENCE, Rig, is_ready, joined, reach, sleep, turn, until};
pub use sys::{
    die_with_parent, is_filtered, limit_addresses, limit_descriptors, limit_file_size,
    ordinary_user, readable, run_as, terminal,
};
pub use udp_sockets::{datagrams_to_closed_ports, udp_sockets};
