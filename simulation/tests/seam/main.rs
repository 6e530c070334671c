//! Tests of the whole crate, in one program.
mod cables;
mod common;
mod ether;
mod faults;
mod runs;
mod switches;
mod trouble;
