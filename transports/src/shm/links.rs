//! All links of a device, by their numbers.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;

use super::link::{Link, Standing};
use super::ring::Spare;

/// The bits of a link's number that say where it is kept; the others count how often that place was
/// used, so that a number does not come back before all others of the place did.
const SLOT_BITS: u32 = 8;

/// The most links that a device can have.
pub(super) const MOST: usize = 1 << SLOT_BITS;

pub(super) struct Links {
    slots: Vec<Option<Link>>,
    /// The slots in use, each looked at in turn.
    live: Vec<u8>,
    /// The numbers to be used next, those longest out of use first.
    free: VecDeque<PathId>,
    spare: Spare,
}

impl Links {
    pub fn new(most: usize, spare: Spare) -> Self {
        let slots = (0..most).map(|_| None).collect();
        let free = (0..most).map(|slot| PathId(slot as u32)).collect();
        Self { slots, live: Vec::with_capacity(most), free, spare }
    }

    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// The most that there may be.
    pub fn most(&self) -> usize {
        self.slots.len()
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Which slot is looked at in the so many'th place.
    #[inline]
    pub fn at(&mut self, place: usize) -> (u8, &mut Link) {
        let slot = self.live[place];
        (slot, self.slot(slot).expect("a live slot has a link"))
    }

    #[inline]
    pub fn slot(&mut self, slot: u8) -> Option<&mut Link> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    #[inline]
    pub fn get(&mut self, id: PathId) -> Option<&mut Link> {
        self.slot(slot(id)).filter(|link| link.id == id)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.slots.iter_mut().flatten()
    }

    /// The link to a peer by its name.
    pub fn named(&self, name: &str) -> Option<&Link> {
        let mut links = self.slots.iter().flatten();
        links.find(|link| link.standing == Standing::Up && *link.name == *name)
    }

    /// Adds the link that is made for a number, if it can be, and there is one left.
    pub fn add<E>(
        &mut self,
        make: impl FnOnce(PathId) -> Result<Link, E>,
    ) -> Option<Result<&mut Link, E>> {
        let &id = self.free.front()?;
        let mut link = match make(id) {
            Ok(link) => link,
            Err(why) => return Some(Err(why)),
        };
        link.writer.may_take(self.spare.clone());
        self.free.pop_front();
        self.live.push(slot(id));
        Some(Ok(self.slots[usize::from(slot(id))].insert(link)))
    }

    pub fn remove(&mut self, slot: u8) -> Option<Link> {
        let link = self.slots.get_mut(usize::from(slot))?.take()?;
        self.live.retain(|live| *live != slot);
        self.free.push_back(PathId(link.id.0.wrapping_add(1 << SLOT_BITS)));
        Some(link)
    }
}

/// Where a link is kept.
#[inline]
pub(super) fn slot(id: PathId) -> u8 {
    id.0 as u8
}

const _: () = assert!(SLOT_BITS == u8::BITS);

/// A set of slots.
#[derive(Default, Debug)]
pub(super) struct Set {
    members: [u64; MOST / 64],
    /// Which of the members' words are not zero. All that is looked at of an empty set: members are
    /// stored word by word, and who loads several words at once waits until that has reached the
    /// cache. (As wide as it is loaded, for the same reason: bits are counted in no less.)
    words: u32,
}

impl Set {
    #[inline]
    pub fn insert(&mut self, slot: u8) {
        self.members[usize::from(slot / 64)] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    pub fn remove(&mut self, slot: u8) {
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

    /// Takes the first one out.
    #[inline]
    pub fn pop(&mut self) -> Option<u8> {
        let index = self.words.trailing_zeros();
        let word = self.members.get_mut(index as usize)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        if *word == 0 {
            self.words &= self.words - 1;
        }
        Some((64 * index + bit) as u8)
    }

    /// Takes out those that are not to be kept, where they are: see [`Self::words`] for why.
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(u8) -> bool) {
        let mut words = self.words;
        while let Some(word) = self.members.get_mut(words.trailing_zeros() as usize) {
            let index = words.trailing_zeros();
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                if !keep((64 * index + bit) as u8) {
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
        let mut set = Set::default();
        for slot in [255, 0, 64, 63, 64, 7] {
            set.insert(slot);
        }
        set.remove(7);
        assert!(std::iter::from_fn(|| set.pop()).eq([0, 63, 64, 255]));
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
