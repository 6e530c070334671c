//! Many whole words at once, in no order: loads and stores as relaxed as of one.
//!
//! A loop of atomic accesses is one of eight bytes at a time, since compilers don't join them. The
//! processor has an instruction that moves a number of aligned quadwords and nothing smaller, and
//! runs at the speed of its caches: twice to three times that of the loop from a few kilobytes on.
//! It takes a dozen nanoseconds to begin.

use crate::sync::AtomicU64;

/// From how many words on that pays.
const MANY: usize = 128;

/// Stores bytes as words, of which there must be as many; unless they are few, or it can't be done
/// here: whether it was.
#[inline]
pub(in crate::memory) fn store(words: &[AtomicU64], bytes: &[u8]) -> bool {
    assert_eq!(words.len() * 8, bytes.len());
    // SAFETY: so many bytes are read, and as many words written.
    words.len() >= MANY && unsafe { moved(bytes.as_ptr(), words.as_ptr().cast(), words.len()) }
}

/// Loads words as bytes, in the same way.
#[inline]
pub(in crate::memory) fn load(words: &[AtomicU64], bytes: &mut [u8]) -> bool {
    assert_eq!(words.len() * 8, bytes.len());
    // SAFETY: so many words are read, and as many bytes written.
    words.len() >= MANY && unsafe { moved(words.as_ptr().cast(), bytes.as_mut_ptr(), words.len()) }
}

/// Copies words to words, in the same way, the lowest first where they overlap.
#[inline]
pub(in crate::memory) fn copy(from: &[AtomicU64], to: &[AtomicU64]) -> bool {
    assert_eq!(from.len(), to.len());
    // SAFETY: so many words are read, and as many written.
    to.len() >= MANY && unsafe { moved(from.as_ptr().cast(), to.as_ptr().cast(), to.len()) }
}

/// Moves words, of which either side may be atomic.
///
/// # Safety
/// So many words at `from` can be read, and those at `to` written: memory that is borrowed
/// exclusively, or atomic words.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline]
unsafe fn moved(from: *const u8, to: *const u8, words: usize) -> bool {
    // SAFETY: the instruction moves as many quadwords as it is told, upwards. Of atomic words,
    // which are aligned, each is loaded and stored whole, and that is all that a relaxed access is;
    // what is stored later is seen later. The caller answers for the memory.
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

/// Does nothing: other processors have their loop.
///
/// # Safety
/// None is needed.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
unsafe fn moved(_: *const u8, _: *const u8, _: usize) -> bool {
    false
}
