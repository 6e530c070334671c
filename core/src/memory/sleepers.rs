//! Sleeping until a region changes, and waking whoever does.

use super::{AccessError, Region};
use crate::sync::{Ordering, fence};

/// The word of a region that counts who sleeps until the region changes.
///
/// Whoever is to be woken announces it there, looks at the region once more, and only then sleeps.
/// Whoever changes the region looks at the word behind the change. Between the two steps of each
/// lies a fence, so either the sleeper sees the change, or the other one sees the announcement:
/// nobody sleeps through a change. How a sleeper is woken is another matter, which is not decided
/// here.
#[derive(Clone, Copy, Debug)]
pub struct Sleepers<'r> {
    region: &'r Region,
    at: usize,
}

impl<'r> Sleepers<'r> {
    /// The word at an offset of a region. It must be zero when nobody sleeps.
    ///
    /// # Errors
    /// When there is no whole, aligned word at the offset.
    pub fn new(region: &'r Region, at: usize) -> Result<Self, AccessError> {
        region.load(at)?;
        Ok(Self { region, at })
    }

    /// Announces that somebody is about to sleep, until the returned value is dropped. The sleeper
    /// looks at the region again before sleeping.
    #[must_use]
    pub fn announce(self) -> Announced<'r> {
        self.add(1);
        fence(Ordering::SeqCst);
        Announced(self)
    }

    /// Whether somebody may sleep, and is to be woken. To be asked behind a change of the region.
    #[inline]
    #[must_use]
    pub fn are_there(self) -> bool {
        fence(Ordering::SeqCst);
        self.region.load(self.at).is_ok_and(|sleepers| sleepers != 0)
    }

    fn add(self, sleepers: u64) {
        // The word was there when this value was made.
        let _ = self.region.fetch_add(self.at, sleepers);
    }
}

/// An announcement that somebody sleeps, or is about to.
#[derive(Debug)]
pub struct Announced<'r>(Sleepers<'r>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.add(u64::MAX);
    }
}
