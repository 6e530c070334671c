//! The unsafe code of `memory`, each block with its reason.

mod allocation;
mod bulk;
#[cfg(not(loom))]
mod epochs;
mod few;
mod foreign;
mod prefetch;

pub(super) use allocation::Allocation;
pub(super) use bulk::{copy, load, store};
#[cfg(not(loom))]
pub use epochs::{Frozen, PrivatePart};
pub(crate) use few::Few;
pub(super) use prefetch::to_write;
