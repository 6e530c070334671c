//! Accesses to the memory of processes: reads, writes, stores and atomic changes.

mod atomic;
mod copying;
mod handles;
mod indexed;
mod place;
mod signals;
mod span;

pub(crate) use handles::Tally;
pub use handles::{Done, Get, GetAll};
pub use place::Place;
pub use span::Span;
