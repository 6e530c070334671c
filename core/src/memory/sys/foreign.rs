//! Regions on memory that did not come from this program's allocator.

use std::ptr::NonNull;
use std::sync::Arc;

use super::held::{Held, Owner};
use crate::memory::Region;
use crate::sync::AtomicU64;

impl Region {
    /// A region on memory from elsewhere: mapped by several processes, or a C program's. `owner` is
    /// dropped with the last handle.
    ///
    /// It can do everything that other regions can but become [private](Self::try_private): whether
    /// anybody else leads there is not known here.
    ///
    /// # Safety
    /// From `first` on, `len` bytes, rounded up to whole words, must be memory that can be read and
    /// written for as long as `owner` is not dropped, wherever it is moved. Meanwhile this process
    /// reaches them by atomic accesses to these words only. (What other processes do there is no
    /// access of this program's, whatever its size: a word is read as one that was written to it.)
    #[must_use]
    pub unsafe fn foreign(
        first: NonNull<AtomicU64>,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        let owner = Arc::new(Owner::Foreign { _keeps: Box::new(owner) });
        Self { memory: Held { first, len, owner } }
    }
}
