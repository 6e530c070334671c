//! Tests of the whole crate, in one program.
mod cables;
mod common;
mod conformance;
mod ether;
mod faults;
mod lab;
mod runs;
mod switches;
mod trouble;
