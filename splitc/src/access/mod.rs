//! Accesses to the memory of processes: reads, writes, stores and atomic changes.
//!
//! | file | what it does |
//! |---|---|
//! | `place`, `span` | one element, or many, and the operations on them |
//! | `atomic`, `signals`, `copying` | further operations on places and spans |
//! | `handles` | handles to operations that are under way |
//!
//! An access is given a pointer and a world. It checks the pointer, hands the operation to the
//! world, and returns the value, a handle, or an error before anything is sent.

mod atomic;
mod copying;
mod handles;
mod place;
mod signals;
mod span;

pub(crate) use handles::By;
pub use handles::{Done, Get, GetAll};
pub use place::Place;
pub(crate) use place::{EMPTY, load};
pub use span::Span;
pub(crate) use span::pieces;
