//! An allocator that counts the memory that a program holds.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

thread_local! {
    /// The number of allocations of this thread, and their bytes in all.
    static OF_THREAD: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts the bytes that are allocated. A test makes it the global
/// allocator.
pub struct Allocated(AtomicIsize);

impl Allocated {
    /// Makes an allocator that has allocated nothing yet.
    pub const fn nothing() -> Self {
        Self(AtomicIsize::new(0))
    }

    /// The number of allocations that this thread has made.
    pub fn count_of_thread() -> u64 {
        OF_THREAD.get().0
    }

    /// The bytes that this thread has allocated, of which some may have been freed since.
    pub fn bytes_of_thread() -> usize {
        OF_THREAD.get().1
    }

    fn note(&self, layout: Layout) {
        self.0.fetch_add(layout.size() as isize, Ordering::Relaxed);
        let (count, bytes) = OF_THREAD.get();
        OF_THREAD.set((count + 1, bytes.wrapping_add(layout.size())));
    }

    /// The number of bytes that are allocated.
    pub fn bytes(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: what is asked for is the system's, by whose rules this was called.
unsafe impl GlobalAlloc for Allocated {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note(layout);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // Without this function, zeroed memory would be written, and so be really taken from the
    // system.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.note(layout);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
