//! The ranges of a heap that are private at present, which handlers of messages refuse.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// A table of the ranges of a heap that this process has as slices.
///
/// The other processes refuse to send what would access such a range. This table is a second line
/// of defence, against a process that does not: its messages are refused. A message that is being
/// handled while a range is added may still access that range.
#[derive(Default, Debug)]
pub(crate) struct Guards {
    /// How many ranges there are, to be looked at without the lock.
    count: AtomicUsize,
    ranges: RwLock<Vec<Range<u64>>>,
}

impl Guards {
    /// Whether a message may access `len` bytes of the heap from `offset` on.
    #[inline]
    pub fn allow(&self, offset: usize, len: usize) -> bool {
        self.count.load(Ordering::Acquire) == 0 || self.allow_beside(offset as u64, len as u64)
    }

    #[cold]
    fn allow_beside(&self, offset: u64, len: u64) -> bool {
        let end = offset.saturating_add(len);
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.iter().all(|range| end <= range.start || range.end <= offset)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Range<u64>>)) {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut ranges);
        self.count.store(ranges.len(), Ordering::Release);
    }

    /// Refuses messages that access a range, until the returned value is dropped.
    pub fn guard(&self, from: u64, len: u64) -> Guarded<'_> {
        let range = from..from.saturating_add(len);
        self.change(|ranges| ranges.push(range.clone()));
        Guarded { guards: self, range }
    }
}

/// A range that messages must not access while this value lives.
pub(crate) struct Guarded<'g> {
    guards: &'g Guards,
    range: Range<u64>,
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        self.guards.change(|ranges| {
            if let Some(at) = ranges.iter().position(|range| *range == self.range) {
                ranges.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_access_what_lies_beside_guarded_ranges_and_nothing_within() {
        let guards = Guards::default();
        assert!(guards.allow(0, usize::MAX));
        let first = guards.guard(64, 128);
        let second = guards.guard(512, 64);
        for (offset, len) in [(0, 64), (192, 320), (192, 0), (576, 8), (576, usize::MAX)] {
            assert!(guards.allow(offset, len), "{offset}+{len}");
        }
        for (offset, len) in [(0, 65), (64, 1), (191, 1), (191, 400), (0, usize::MAX), (570, 6)] {
            assert!(!guards.allow(offset, len), "{offset}+{len}");
        }
        drop(first);
        assert!(guards.allow(64, 128) && !guards.allow(512, 8));
        drop(second);
        assert!(guards.allow(0, usize::MAX));
    }
}
