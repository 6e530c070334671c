//! Tests of the whole crate, in one program.
mod descriptors;
mod fuzz_bodies;
mod growth;
mod meeting;
mod recorded;
mod vanishing;
