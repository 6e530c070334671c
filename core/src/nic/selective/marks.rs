//! A set of sequence numbers near each other.

use crate::nic::selective::REACH;
use crate::wire::Psn;

/// A set of sequence numbers, any two of which are less than [`REACH`] apart: its owner sees to
/// that.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    words: [u64; REACH as usize / 64],
    count: u32,
}

impl Marks {
    pub const NONE: Self = Self { words: [0; REACH as usize / 64], count: 0 };

    fn place(psn: Psn) -> (usize, u64) {
        // All sequence numbers are a multiple of the circle of marks.
        let place = psn.get() % REACH;
        (place as usize / 64, 1 << (place % 64))
    }

    #[inline]
    pub fn has(&self, psn: Psn) -> bool {
        let (word, bit) = Self::place(psn);
        self.words[word] & bit != 0
    }

    /// Adds a sequence number to the set. Returns whether it was not in the set.
    #[inline]
    pub fn insert(&mut self, psn: Psn) -> bool {
        let (word, bit) = Self::place(psn);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(new);
        new
    }

    /// Removes a sequence number from the set. Returns whether it was in the set.
    #[inline]
    pub fn remove(&mut self, psn: Psn) -> bool {
        let (word, bit) = Self::place(psn);
        let was = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.count -= u32::from(was);
        was
    }

    /// Removes `len` numbers from `first` on.
    pub fn remove_range(&mut self, first: Psn, len: u32) {
        if len >= REACH {
            return self.clear();
        }
        for step in 0..len {
            if self.count == 0 {
                return;
            }
            self.remove(first.add(step));
        }
    }

    /// Returns the first number of the set among the `len` from `first` on.
    pub fn first_of(&self, first: Psn, len: u32) -> Option<Psn> {
        let none = self.count == 0;
        (0..if none { 0 } else { len.min(REACH) })
            .map(|step| first.add(step))
            .find(|&psn| self.has(psn))
    }

    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn clear(&mut self) {
        *self = Self::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_goes_round_with_the_numbers() {
        let mut marks = Marks::NONE;
        let first = Psn::new(0).before().before();
        for step in [0, 1, 2, 700] {
            assert!(marks.insert(first.add(step)));
            assert!(!marks.insert(first.add(step)));
        }
        assert_eq!((marks.count(), marks.first_of(first.add(3), 1000)), (4, Some(first.add(700))));
        marks.remove_range(first, 3);
        assert_eq!((marks.count(), marks.first_of(first, 1024)), (1, Some(first.add(700))));
        assert!(marks.remove(first.add(700)) && !marks.remove(first.add(700)) && marks.is_empty());
    }
}
