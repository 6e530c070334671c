//! Lists of entries by key, through a slab of entries that the lists share.

use super::pattern::Key;
use crate::matching::map::Map;

/// The place of an entry in its slab.
pub type Place = u32;

/// The place that stands for no entry.
const NONE: Place = Place::MAX;

/// The neighbours of an entry in one list.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    before: Place,
    after: Place,
}

impl Neighbours {
    pub const NONE: Self = Self { before: NONE, after: NONE };
}

/// Where entries have their neighbours in the lists of one class.
pub trait Linked {
    /// The key by which entries are ordered.
    type Order: Ord;

    fn neighbours(&mut self, place: Place) -> &mut Neighbours;

    /// Returns the place of an entry in the order of all.
    fn order(&self, place: Place) -> Self::Order;
}

/// The first and the last entry of a list.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Place,
    last: Place,
}

/// Lists of entries, one for each key, each in the order in which entries were put there.
#[derive(Default, Debug)]
pub struct Lists(Map<Key, Ends>);

impl Lists {
    /// Returns whether the lists have no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first entry of a key.
    pub fn first(&self, key: &Key) -> Option<Place> {
        self.0.get(key).map(|ends| ends.first)
    }

    /// Puts an entry behind the others of a key.
    pub fn push(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let new = Ends { first: place, last: NONE };
        let ends = self.0.entry(key).or_insert(new);
        *entries.neighbours(place) = Neighbours { before: ends.last, after: NONE };
        if ends.last != NONE {
            entries.neighbours(ends.last).after = place;
        }
        ends.last = place;
    }

    /// Puts an entry where its order belongs among those of a key.
    pub fn insert(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let order = entries.order(place);
        if self.0.get(&key).is_none_or(|ends| entries.order(ends.last) < order) {
            return self.push(key, place, entries);
        }
        let mut after = self.first(&key).unwrap_or(NONE);
        while after != NONE && entries.order(after) < order {
            after = entries.neighbours(after).after;
        }
        if after == NONE {
            return self.push(key, place, entries);
        }
        let before = std::mem::replace(&mut entries.neighbours(after).before, place);
        *entries.neighbours(place) = Neighbours { before, after };
        if before == NONE {
            self.0.entry(key).and_modify(|ends| ends.first = place);
        } else {
            entries.neighbours(before).after = place;
        }
    }

    /// Takes an entry out of the list of its key.
    pub fn remove(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let Neighbours { before, after } = *entries.neighbours(place);
        if before == NONE && after == NONE {
            self.0.remove(&key);
            return;
        }
        let ends = self.0.get_mut(&key).expect("the list of an entry exists while it has entries");
        match before {
            NONE => ends.first = after,
            before => entries.neighbours(before).after = after,
        }
        match after {
            NONE => ends.last = before,
            after => entries.neighbours(after).before = before,
        }
    }
}
