//! Tests of the whole crate, in one program.
mod fabric;
mod recovery;
