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
///
/// The list of one key stands apart from the map of all others. Most programs ask for the same key
/// again and again, and find its list without hashing.
#[derive(Default, Debug)]
pub struct Lists {
    /// The key whose list stands apart, with the ends of the list unless that is empty.
    apart: Option<(Key, Option<Ends>)>,
    others: Map<Key, Ends>,
}

impl Lists {
    /// Returns whether the lists have no entries.
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.apart.is_none_or(|(_, ends)| ends.is_none())
    }

    /// Returns the first entry of a key.
    #[inline]
    pub fn first(&self, key: &Key) -> Option<Place> {
        match self.apart {
            Some((apart, ends)) if apart == *key => ends.map(|ends| ends.first),
            _ if self.others.is_empty() => None,
            _ => self.others.get(key).map(|ends| ends.first),
        }
    }

    /// Returns the ends of a key's list, unless that is empty.
    fn ends_mut(&mut self, key: &Key) -> Option<&mut Ends> {
        match &mut self.apart {
            Some((apart, ends)) if apart == key => ends.as_mut(),
            _ => self.others.get_mut(key),
        }
    }

    /// Returns the ends of a key's list, which has these new ends if it was empty. If the list that
    /// stands apart is empty, that of the key takes its place, unless the map has it.
    fn ends_or_new(&mut self, key: Key, new: Ends) -> &mut Ends {
        let takes_place = match self.apart {
            Some((apart, ends)) => {
                apart == key || (ends.is_none() && !self.others.contains_key(&key))
            }
            None => true,
        };
        if !takes_place {
            return self.others.entry(key).or_insert(new);
        }
        let ends = self.apart.and_then(|(_, ends)| ends).unwrap_or(new);
        self.apart.insert((key, None)).1.insert(ends)
    }

    /// Forgets a key's list, which has become empty.
    fn forget(&mut self, key: &Key) {
        match &mut self.apart {
            Some((apart, ends)) if apart == key => *ends = None,
            _ => drop(self.others.remove(key)),
        }
    }

    /// Puts an entry behind the others of a key.
    pub fn push(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let new = Ends { first: place, last: NONE };
        let ends = self.ends_or_new(key, new);
        *entries.neighbours(place) = Neighbours { before: ends.last, after: NONE };
        if ends.last != NONE {
            entries.neighbours(ends.last).after = place;
        }
        ends.last = place;
    }

    /// Puts an entry where its order belongs among those of a key.
    pub fn insert(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let order = entries.order(place);
        if self.ends_mut(&key).is_none_or(|ends| entries.order(ends.last) < order) {
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
            self.ends_mut(&key).into_iter().for_each(|ends| ends.first = place);
        } else {
            entries.neighbours(before).after = place;
        }
    }

    /// Takes an entry out of the list of its key.
    pub fn remove(&mut self, key: Key, place: Place, entries: &mut impl Linked) {
        let Neighbours { before, after } = *entries.neighbours(place);
        if before == NONE && after == NONE {
            return self.forget(&key);
        }
        let ends = self.ends_mut(&key).expect("the list of an entry exists while it has entries");
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
