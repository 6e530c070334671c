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
        // A branch, and no sum with the bit: of that, rustc 1.95 with full optimisation makes code
        // which forgets what was inserted.
        if new {
            self.count += 1;
        }
        new
    }

    /// Removes a sequence number from the set. Returns whether it was in the set.
    #[inline]
    pub fn remove(&mut self, psn: Psn) -> bool {
        let (word, bit) = Self::place(psn);
        let was = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        if was {
            self.count -= 1;
        }
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
    use std::collections::BTreeSet;

    use super::*;

    /// Inserts, removes and looks for numbers at random, from so many seeds.
    #[test]
    fn a_set_has_what_was_put_in_and_not_taken_out() {
        for seed in 1..300_u32 {
            let (mut marks, mut model) = (Marks::NONE, BTreeSet::new());
            let (base, mut random) = (Psn::new(seed * 77_777), seed);
            for _ in 0..500 {
                random ^= random << 13;
                random ^= random >> 17;
                random ^= random << 5;
                let (step, len) = (random % 1000, (random >> 10) % 50);
                let psn = base.add(step);
                match random >> 29 {
                    0..=4 => assert_eq!(marks.insert(psn), model.insert(step)),
                    5 => assert_eq!(marks.remove(psn), model.remove(&step)),
                    6 => {
                        let len = len.min(1000 - step);
                        marks.remove_range(psn, len);
                        model.retain(|kept| !(step..step + len).contains(kept));
                    }
                    _ => {
                        marks.clear();
                        model.clear();
                    }
                }
                assert_eq!(marks.count() as usize, model.len());
                let first = model.first().map(|step| base.add(*step));
                assert_eq!(marks.first_of(base, 1000), first);
                assert!((0..1000).all(|step| marks.has(base.add(step)) == model.contains(&step)));
            }
        }
    }

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
