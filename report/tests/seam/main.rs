//! Tests of the whole crate, in one program.
mod browser;
mod figures;
mod page;
