//! Sleeping until a region changes, and waking the threads that sleep.

use super::{AccessError, Region};
use crate::sync::{Ordering, fence};

/// The word of a region that counts the threads which sleep until the region changes.
///
/// A thread that wants to be woken announces it in this word, looks at the region once more, and
/// only then sleeps. A thread that changes the region looks at this word after the change. Between
/// the two steps of each thread there is a fence. So either the sleeping thread sees the change, or
/// the changing thread sees the announcement, and no change is missed. How a thread is woken is not
/// decided here.
#[derive(Clone, Copy, Debug)]
pub struct Sleepers<'r> {
    region: &'r Region,
    at: usize,
}

impl<'r> Sleepers<'r> {
    /// Takes the word at an offset of a region. It must be zero when no thread sleeps.
    ///
    /// # Errors
    /// When there is no whole, aligned word at the offset.
    pub fn new(region: &'r Region, at: usize) -> Result<Self, AccessError> {
        region.load(at)?;
        Ok(Self { region, at })
    }

    /// Announces that a thread is about to sleep, until the returned value is dropped. The thread
    /// must look at the region again before it sleeps.
    #[must_use]
    pub fn announce(self) -> Announced<'r> {
        self.add(1);
        fence(Ordering::SeqCst);
        Announced(self)
    }

    /// Whether a thread may sleep, and is to be woken. To be called after a change of the region.
    #[inline]
    #[must_use]
    pub fn are_there(self) -> bool {
        fence(Ordering::SeqCst);
        self.region.load(self.at).is_ok_and(|sleepers| sleepers != 0)
    }

    fn add(self, sleepers: u64) {
        // The word exists: the constructor has checked it.
        let _ = self.region.fetch_add(self.at, sleepers);
    }
}

/// An announcement that a thread sleeps, or is about to.
#[derive(Debug)]
pub struct Announced<'r>(Sleepers<'r>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.add(u64::MAX);
    }
}
