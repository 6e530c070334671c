//! Hints to the processor that memory will be used.

use crate::sync::AtomicU64;

/// Asks the processor to fetch the cache line of a word for writing.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
pub(in crate::memory) fn to_write(word: &AtomicU64) {
    // SAFETY: the instruction faults at no address, and changes neither memory nor registers.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) word, options(nostack, preserves_flags, readonly));
    }
}

/// Does nothing where there is no such hint.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline]
pub(in crate::memory) fn to_write(_word: &AtomicU64) {}
