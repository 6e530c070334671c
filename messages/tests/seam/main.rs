//! Tests of the whole crate, in one program.
mod collectives;
mod ending;
mod ends;
mod fabric;
mod frames;
mod fuzz_bodies;
mod killed;
mod lent;
mod long;
mod posted;
mod stopped;
mod streams;
mod striped;
mod tagged;
#[allow(dead_code, reason = "the other program uses more")]
mod wire;
