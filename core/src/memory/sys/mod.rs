//! The unsafe code of `memory`, each block with its reason.

mod allocation;
mod bulk;
mod inline_bytes;
mod prefetch;

pub(super) use allocation::Allocation;
#[cfg(not(loom))]
pub(super) use allocation::words;
pub(super) use bulk::{copy, load, store};
pub(crate) use inline_bytes::InlineBytes;
pub(super) use prefetch::to_write;
