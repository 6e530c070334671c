//! Copies of many whole words, by relaxed loads and stores.
//!
//! A loop of atomic accesses moves eight bytes at a time, since compilers don't join atomic accesses.
//! The processor has an instruction (`rep movsq`) that moves a number of aligned quadwords, and
//! nothing smaller, at the speed of its caches. From a few kilobytes on, it is two to three times as
//! fast as the loop. It takes a dozen nanoseconds to begin.

use crate::sync::AtomicU64;

/// The least number of words for which the instruction pays.
const MANY: usize = 128;

/// Stores bytes as words, of which there must be as many. Returns whether it did: not if the words
/// are few, or the processor has no such instruction.
#[inline]
pub(in crate::memory) fn store(words: &[AtomicU64], bytes: &[u8]) -> bool {
    assert_eq!(words.len() * 8, bytes.len());
    // SAFETY: so many bytes are read, and as many words written.
    words.len() >= MANY && unsafe { moved(bytes.as_ptr(), words.as_ptr().cast(), words.len()) }
}

/// Loads words as bytes, under the same conditions as [`store`].
#[inline]
pub(in crate::memory) fn load(words: &[AtomicU64], bytes: &mut [u8]) -> bool {
    assert_eq!(words.len() * 8, bytes.len());
    // SAFETY: so many words are read, and as many bytes written.
    words.len() >= MANY && unsafe { moved(words.as_ptr().cast(), bytes.as_mut_ptr(), words.len()) }
}

/// Copies words to words, under the same conditions as [`store`]. Where the two overlap, the lowest
/// word is copied first.
#[inline]
pub(in crate::memory) fn copy(from: &[AtomicU64], to: &[AtomicU64]) -> bool {
    assert_eq!(from.len(), to.len());
    // SAFETY: so many words are read, and as many written.
    to.len() >= MANY && unsafe { moved(from.as_ptr().cast(), to.as_ptr().cast(), to.len()) }
}

/// Moves words, which may be atomic on either side. Returns true, since this processor can.
///
/// # Safety
/// So many words at `from` can be read, and those at `to` written: memory that is borrowed
/// exclusively, or atomic words.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
unsafe fn moved(from: *const u8, to: *const u8, words: usize) -> bool {
    // SAFETY: the instruction moves that number of quadwords, upwards. Atomic words are aligned, so
    // each is loaded and stored whole, which is all that a relaxed access guarantees. The caller
    // guarantees that the memory may be read and written.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") words => _,
            options(nostack, preserves_flags)
        );
    }
    true
}

/// Returns false, since other processors have no such instruction, and callers use a loop.
///
/// # Safety
/// None is needed.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
unsafe fn moved(_: *const u8, _: *const u8, _: usize) -> bool {
    false
}
