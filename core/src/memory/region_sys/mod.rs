//! Unsafe code that stands on regions: regions on foreign memory, and plain slices of memory that is
//! private for an epoch. What both stand on is in [`sys`](super::sys).

#[cfg(not(loom))]
mod epochs;
mod foreign;

#[cfg(not(loom))]
pub use epochs::{Frozen, PrivatePart};
