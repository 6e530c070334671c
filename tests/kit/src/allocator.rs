//! An allocator that counts the memory that a program holds.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// The system's allocator, which counts the bytes that are allocated. A test makes it the global
/// allocator.
pub struct Allocated(AtomicIsize);

impl Allocated {
    /// Makes an allocator that has allocated nothing yet.
    pub const fn nothing() -> Self {
        Self(AtomicIsize::new(0))
    }

    /// The number of bytes that are allocated.
    pub fn bytes(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: what is asked for is the system's, by whose rules this was called.
unsafe impl GlobalAlloc for Allocated {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // Without this function, zeroed memory would be written, and so be really taken from the
    // system.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
