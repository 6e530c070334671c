//! Regions on memory that did not come from this program's allocator.

use std::ptr::NonNull;

use crate::memory::Region;
use crate::memory::sys::Allocation;
use crate::sync::AtomicU64;

impl Region {
    /// Makes a region on foreign memory: memory that several processes map, or a C program's.
    /// `owner` is dropped with the last handle.
    ///
    /// Such a region can do everything that other regions can but become
    /// [private](Self::try_private), since nobody can tell whether other pointers lead to its memory.
    ///
    /// # Safety
    /// From `first` on, `len` bytes, rounded up to whole words, must be memory that can be read and
    /// written for as long as `owner` is not dropped, wherever it is moved. Meanwhile this process
    /// reaches them by atomic accesses to these words only. (Accesses of other processes are not
    /// accesses of this program, whatever their size: this program reads each word as if it had been
    /// written whole.)
    #[must_use]
    pub unsafe fn foreign(
        first: NonNull<AtomicU64>,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        // SAFETY: the caller promises just this.
        let memory = unsafe { Allocation::foreign(first, len, owner) };
        Self { memory }
    }
}
