//! Tests of the whole crate, in one program.
mod cm;
mod connections;
mod fuzz_bodies;
mod region;
