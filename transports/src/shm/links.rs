//! All links of a device, by their numbers.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;

use super::link::{Link, Standing};
use super::ring::Spare;
use super::sleep::{self, Shared};

/// The bits of a link's number that say where it is kept; the others count how often that place was
/// used, so that a number does not come back before all others of the place did.
const SLOT_BITS: u32 = 12;

/// The most links that a device can have.
pub(super) const MOST: usize = 1 << SLOT_BITS;

/// How many links are looked at in each turn, however silent they are. Of more, the silent ones
/// doze.
pub(super) const AWAKE: usize = 64;

pub(super) struct Links {
    /// Links by their slots, with room for more as there are more.
    slots: Vec<Option<Link>>,
    most: usize,
    /// The slots that are looked at in turn: of those in use, all whose links do not doze.
    live: Vec<u16>,
    /// How many links there are.
    count: usize,
    /// The numbers of slots that were used before, to be used next, those longest out of use first.
    free: VecDeque<PathId>,
    spare: Spare,
}

impl Links {
    pub fn new(most: usize, spare: Spare) -> Self {
        let (slots, live, free) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { slots, most, live, count: 0, free, spare }
    }

    pub fn is_full(&self) -> bool {
        self.count >= self.most
    }

    /// The most that there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many are looked at in turn.
    #[inline]
    pub fn awake(&self) -> usize {
        self.live.len()
    }

    /// Whether any doze, so that only their sockets tell when they have something.
    pub fn any_doze(&self) -> bool {
        self.live.len() < self.count
    }

    /// Which slot is looked at in the so many'th place.
    #[inline]
    pub fn at(&mut self, place: usize) -> (u16, &mut Link) {
        let slot = self.live[place];
        (slot, self.slot(slot).expect("a live slot has a link"))
    }

    /// The links that are looked at in turn.
    pub fn all_awake(&self) -> impl Iterator<Item = &Link> {
        self.live.iter().filter_map(|&slot| self.slots.get(usize::from(slot))?.as_ref())
    }

    /// Has links doze of which nothing has come since this was called before, as far as more than
    /// [`AWAKE`] are awake. Their writers are told that the reader sleeps, and ring the bell then.
    #[cold]
    pub fn doze(&mut self) {
        let Self { slots, live, .. } = self;
        let mut beyond = live.len().saturating_sub(AWAKE);
        let mut dozing = Vec::new();
        for &slot in &*live {
            let Some(link) = slots[usize::from(slot)].as_mut() else { continue };
            let silent = link.is_silent() && link.standing == Standing::Up;
            if silent && beyond > 0 {
                beyond -= 1;
                dozing.push(slot);
            }
        }
        let link = |slot: &u16| slots[usize::from(*slot)].as_ref();
        sleep::fall_asleep::<Shared>(dozing.iter().filter_map(link).map(|l| l.reader.sleeping()));
        // What was written before its writer could know is found here.
        dozing.retain(|slot| link(slot).is_some_and(|link| !link.reader.has_some()));
        for slot in &dozing {
            if let Some(link) = slots[usize::from(*slot)].as_mut() {
                link.dozes = true;
            }
        }
        live.retain(|slot| {
            let link = slots[usize::from(*slot)].as_ref();
            let dozes = link.is_some_and(|link| link.dozes);
            if let Some(link) = link.filter(|link| !link.dozes) {
                sleep::wake_up::<Shared>(std::iter::once(link.reader.sleeping()));
            }
            !dozes
        });
    }

    /// Has a link that dozes be looked at in turn again. Whether it dozed.
    pub fn rouse(&mut self, slot: u16) -> bool {
        let Some(link) = self.slots.get_mut(usize::from(slot)).and_then(Option::as_mut) else {
            return false;
        };
        let dozed = std::mem::take(&mut link.dozes);
        if dozed {
            sleep::wake_up::<Shared>(std::iter::once(link.reader.sleeping()));
            self.live.push(slot);
        }
        dozed
    }

    #[inline]
    pub fn slot(&mut self, slot: u16) -> Option<&mut Link> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    #[inline]
    pub fn get(&mut self, id: PathId) -> Option<&mut Link> {
        self.slot(slot(id)).filter(|link| link.id == id)
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
        if self.is_full() {
            return None;
        }
        let id = self.free.front().copied().unwrap_or(PathId(self.slots.len() as u32));
        let mut link = match make(id) {
            Ok(link) => link,
            Err(why) => return Some(Err(why)),
        };
        link.writer.may_take(self.spare.clone());
        if self.free.pop_front().is_none() {
            self.slots.push(None);
        }
        self.count += 1;
        self.live.push(slot(id));
        Some(Ok(self.slots[usize::from(slot(id))].insert(link)))
    }

    pub fn remove(&mut self, slot: u16) -> Option<Link> {
        let link = self.slots.get_mut(usize::from(slot))?.take()?;
        self.count -= 1;
        self.live.retain(|live| *live != slot);
        self.free.push_back(PathId(link.id.0.wrapping_add(1 << SLOT_BITS)));
        Some(link)
    }
}

/// Where a link is kept.
#[inline]
pub(super) fn slot(id: PathId) -> u16 {
    (id.0 % MOST as u32) as u16
}

/// A set of slots.
#[derive(Debug)]
pub(super) struct Set {
    members: [u64; MOST / 64],
    /// Which of the members' words are not zero. All that is looked at of an empty set: members are
    /// stored word by word, and who loads several words at once waits until that has reached the
    /// cache. (As wide as it is loaded, for the same reason: bits are counted in no less.)
    words: u64,
}

const _: () = assert!(MOST / 64 == u64::BITS as usize);

impl Default for Set {
    fn default() -> Self {
        Self { members: [0; MOST / 64], words: 0 }
    }
}

impl Set {
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

    /// Takes the first one out.
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

    /// Takes out those that are not to be kept, where they are: see [`Self::words`] for why.
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
        let mut set = Set::default();
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
