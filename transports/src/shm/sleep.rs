//! How a reader goes to sleep so that every record wakes it.
//!
//! The reader says that it sleeps, fences, and looks at its rings once more. A writer writes,
//! fences, and looks whether the reader sleeps. Whichever fence comes first, the other side sees
//! what was stored before it: the reader finds what was written, or the writer rings the bell.
//!
//! The steps are written for any memory, since a test takes them through all interleavings of a
//! modelled one. Each type stands for a fence that was passed, and what may only follow the fence
//! is its method.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Memory in which a reader says whether it sleeps.
pub(super) trait Memory {
    /// A word that reader and writer share.
    type Word: 'static;

    fn load(word: &Self::Word) -> u64;
    fn store(word: &Self::Word, value: u64);
    /// Makes a sequentially consistent fence.
    fn fence();
}

/// The memory that processes share.
pub(super) enum Shared {}

impl Memory for Shared {
    type Word = AtomicU64;

    #[inline]
    fn load(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    #[inline]
    fn store(word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Tells the writers of some links, by a word of each link, that the reader sleeps. The reader must
/// look at all of these links once more before it sleeps.
pub(super) fn fall_asleep<'w, M: Memory>(words: impl Iterator<Item = &'w M::Word>) {
    words.for_each(|word| M::store(word, 1));
    M::fence();
}

/// Tells the writers of some links, by a word of each link, that the reader is awake.
pub(super) fn wake_up<'w, M: Memory>(words: impl Iterator<Item = &'w M::Word>) {
    words.for_each(|word| M::store(word, 0));
}

/// Tells the writer of a new link, by the link's word, if the reader sleeps. There is no fence: a
/// reader that sleeps when a link is made is woken to look at the link.
pub(super) fn begin<M: Memory>(word: &M::Word, asleep: bool) {
    M::store(word, asleep.into());
}

/// The state of a writer behind the fence that follows its records.
pub(super) struct Written<M>(PhantomData<M>);

impl<M: Memory> Written<M> {
    /// Passes the fence, when all records are written.
    #[inline]
    pub fn new() -> Self {
        M::fence();
        Self(PhantomData)
    }

    /// Returns whether a reader must be woken, which says by a word whether it sleeps. For each
    /// sleep this is true once.
    #[inline]
    pub fn must_wake(&self, word: &M::Word) -> bool {
        if M::load(word) == 0 {
            return false;
        }
        M::store(word, 0);
        true
    }
}

#[cfg(all(test, transports_loom))]
mod interleavings;
