//! Sets of the places where links are kept.

use super::links::MOST;

/// A set of slots, by a bit for each.
#[derive(Debug)]
pub(super) struct SlotSet {
    members: [u64; MOST / 64],
    /// A bit for each word of `members` that is not zero. An empty set is known by this word alone.
    /// Members are stored word by word, and a load of several words at once waits until such a
    /// store has reached the cache. (The word is as wide as its loads, for the same reason: bits
    /// are counted in 64.)
    words: u64,
}

const _: () = assert!(MOST / 64 == u64::BITS as usize);

impl Default for SlotSet {
    fn default() -> Self {
        Self { members: [0; MOST / 64], words: 0 }
    }
}

impl SlotSet {
    #[inline]
    pub fn insert(&mut self, slot: u16) {
        self.members[usize::from(slot / 64)] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    pub fn remove(&mut self, slot: u16) {
        let word = &mut self.members[usize::from(slot / 64)];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.words &= !(1 << (slot / 64));
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Takes the lowest slot out of the set.
    #[inline]
    pub fn pop(&mut self) -> Option<u16> {
        let index = self.words.trailing_zeros();
        let word = self.members.get_mut(index as usize)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        if *word == 0 {
            self.words &= self.words - 1;
        }
        Some((64 * index + bit) as u16)
    }

    /// Removes the slots that `keep` rejects, word by word: see [`Self::words`].
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(u16) -> bool) {
        let mut words = self.words;
        while let Some(word) = self.members.get_mut(words.trailing_zeros() as usize) {
            let index = words.trailing_zeros();
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                if !keep((64 * index + bit) as u16) {
                    *word &= !(1 << bit);
                }
                left &= left - 1;
            }
            if *word == 0 {
                self.words &= !(1 << index);
            }
            words &= words - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_each_slot_once_and_gives_them_in_order() {
        let mut set = SlotSet::default();
        for slot in [255, 0, 64, 4095, 63, 64, 7] {
            set.insert(slot);
        }
        set.remove(7);
        assert!(std::iter::from_fn(|| set.pop()).eq([0, 63, 64, 255, 4095]));
        assert!(set.is_empty());
        for slot in [3, 70, 71, 128] {
            set.insert(slot);
        }
        let mut asked = Vec::new();
        set.retain(|slot| {
            asked.push(slot);
            slot == 70
        });
        assert_eq!(asked, [3, 70, 71, 128]);
        assert_eq!((set.pop(), set.pop()), (Some(70), None));
        set.insert(70);
        set.remove(70);
        assert!(set.is_empty() && set.pop().is_none());
    }
}
