//! Tests of the whole crate, in one program.
mod conformance;
mod errors;
mod fuzz_bodies;
mod limits;
mod raw;
mod sharing;
mod shm;
mod udp;
mod udp_nics;
mod wrappers;
