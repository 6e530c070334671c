//! Receives that wait for their messages.

use slab::Slab;

use super::lists::{Linked, Lists, Neighbours, Place};
use super::pattern::{Class, Envelope, Pattern};
use super::scanned::Scanned;

/// The most classes of patterns by which receives are listed.
const MOST_CLASSES: usize = 8;

/// Receives that wait for messages, in the order in which they were posted.
///
/// A message is matched by one look-up for each listed [`Class`] of pattern, however many receives
/// there are of it. Receives of further classes are scanned one after the other, in a table that is
/// small enough for some nanoseconds each.
#[derive(Debug)]
pub struct Posted<R> {
    entries: Slab<Entry<R>>,
    /// Classes and their lists, which stay when they become empty, until another class takes the
    /// place.
    classes: Vec<(Class, Lists)>,
    /// Receives whose classes are not listed.
    scanned: Scanned,
    next: u64,
}

#[derive(Debug)]
struct Entry<R> {
    /// The place of the receive in the order of posting.
    order: u64,
    pattern: Pattern,
    /// The neighbours in the list of the receive's class, unless the receive is scanned.
    neighbours: Option<Neighbours>,
    receive: R,
}

/// Names a posted receive, for as long as the program likes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostedId {
    place: Place,
    order: u64,
}

impl<R> Default for Posted<R> {
    fn default() -> Self {
        let (entries, scanned) = (Slab::new(), Scanned::default());
        Self { entries, classes: Vec::new(), scanned, next: 0 }
    }
}

/// A receive that has met its message, as it was posted.
#[derive(Debug)]
pub struct Met<R> {
    /// The place of the receive in the order of posting.
    pub order: u64,
    pub pattern: Pattern,
    pub receive: R,
}

impl<R> Linked for Slab<Entry<R>> {
    type Order = u64;

    fn neighbours(&mut self, place: Place) -> &mut Neighbours {
        self[place as usize].neighbours.get_or_insert(Neighbours::NONE)
    }

    fn order(&self, place: Place) -> u64 {
        self[place as usize].order
    }
}

impl<R> Posted<R> {
    /// Posts a receive behind the others.
    pub fn post(&mut self, pattern: Pattern, receive: R) -> PostedId {
        let order = self.next;
        self.next += 1;
        let entry = Entry { order, pattern, neighbours: None, receive };
        let place = self.entries.insert(entry) as Place;
        match self.lists_of(pattern.class()) {
            Some(at) => self.classes[at].1.push(pattern.key(), place, &mut self.entries),
            None => self.scanned.insert(order, pattern, place),
        }
        PostedId { place, order }
    }

    /// Posts a receive again that has met a message which does not come, where the receive was in
    /// the order of posting.
    pub fn post_again(&mut self, Met { order, pattern, receive }: Met<R>) -> PostedId {
        let entry = Entry { order, pattern, neighbours: None, receive };
        let place = self.entries.insert(entry) as Place;
        match self.lists_of(pattern.class()) {
            Some(at) => self.classes[at].1.insert(pattern.key(), place, &mut self.entries),
            None => self.scanned.insert(order, pattern, place),
        }
        PostedId { place, order }
    }

    /// Returns the place of the lists of a class, or `None` if there is no room for them.
    fn lists_of(&mut self, class: Class) -> Option<usize> {
        if let Some(at) = self.classes.iter().position(|(of, _)| *of == class) {
            return Some(at);
        }
        if self.classes.len() < MOST_CLASSES {
            self.classes.push((class, Lists::default()));
            return Some(self.classes.len() - 1);
        }
        let at = self.classes.iter().position(|(_, lists)| lists.is_empty())?;
        self.classes[at].0 = class;
        Some(at)
    }

    /// Takes the receive that was posted first of those that take a message.
    pub fn take_for(&mut self, message: Envelope) -> Option<Met<R>> {
        let place = self.find_for(message)?;
        let &Entry { order, pattern, .. } = &self.entries[place as usize];
        Some(Met { order, pattern, receive: self.remove(place) })
    }

    /// Returns the receive that was posted first of those that take a message, and leaves it.
    pub fn first_for(&self, message: Envelope) -> Option<&R> {
        self.find_for(message).map(|place| &self.entries[place as usize].receive)
    }

    fn find_for(&self, message: Envelope) -> Option<Place> {
        let firsts = self.classes.iter().filter_map(|(class, lists)| {
            let place = lists.first(&class.key_of(message))?;
            Some((self.entries[place as usize].order, place))
        });
        let listed = firsts.min();
        let before = listed.map_or(u64::MAX, |(order, _)| order);
        self.scanned.first_for(message, before).or(listed.map(|(_, place)| place))
    }

    /// Takes a receive back, unless it has met a message before.
    pub fn cancel(&mut self, id: PostedId) -> Option<R> {
        let entry = self.entries.get(id.place as usize)?;
        (entry.order == id.order).then(|| self.remove(id.place))
    }

    /// Takes back all receives of some patterns, in the order in which they were posted.
    pub fn cancel_all(&mut self, of: impl Fn(&Pattern) -> bool) -> Vec<R> {
        let entries = self.entries.iter().filter(|(_, entry)| of(&entry.pattern));
        let mut places: Vec<_> = entries.map(|(at, entry)| (entry.order, at as Place)).collect();
        places.sort_unstable();
        places.into_iter().map(|(_, place)| self.remove(place)).collect()
    }

    /// Returns the patterns of the receives that wait.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern> {
        self.entries.iter().map(|(_, entry)| entry.pattern)
    }

    /// Returns the receives that wait, in the order in which they were posted.
    pub fn in_order(&self) -> Vec<(Pattern, &R)> {
        let mut entries: Vec<_> = self.entries.iter().map(|(_, entry)| entry).collect();
        entries.sort_unstable_by_key(|entry| entry.order);
        entries.into_iter().map(|entry| (entry.pattern, &entry.receive)).collect()
    }

    /// Returns how many receives wait.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn remove(&mut self, place: Place) -> R {
        let &Entry { order, pattern, neighbours, .. } = &self.entries[place as usize];
        if neighbours.is_some() {
            let class = pattern.class();
            let mut lists = self.classes.iter_mut().filter(|(of, _)| *of == class);
            let (_, lists) = lists.next().expect("a class is listed while it has receives");
            lists.remove(pattern.key(), place, &mut self.entries);
        } else {
            self.scanned.remove(order);
        }
        self.entries.remove(place as usize).receive
    }
}
