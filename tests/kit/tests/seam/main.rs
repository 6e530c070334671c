//! Tests of the whole crate, in one program.
mod conformance;
mod lab;
