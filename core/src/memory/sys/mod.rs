//! The unsafe code of `memory`, each block with its reason.

mod allocation;
mod bulk;
#[cfg(not(loom))]
mod epochs;
mod foreign;
mod inline_bytes;
mod prefetch;

pub(super) use allocation::Allocation;
pub(super) use bulk::{copy, load, store};
#[cfg(not(loom))]
pub use epochs::{Frozen, PrivatePart};
pub(crate) use inline_bytes::InlineBytes;
pub(super) use prefetch::to_write;
