//! Receives that wait for their messages.

use slab::Slab;

use super::lists::{Linked, Lists, Neighbours, Place};
use super::pattern::{Class, Envelope, Pattern};

/// Receives that wait for messages, in the order in which they were posted.
///
/// A message is matched by one look-up for each [`Class`] of pattern that is posted, however many
/// receives there are of it.
#[derive(Debug)]
pub struct Posted<R> {
    entries: Slab<Entry<R>>,
    classes: Vec<(Class, Lists)>,
    next: u64,
}

#[derive(Debug)]
struct Entry<R> {
    /// The place of the receive in the order of posting.
    order: u64,
    pattern: Pattern,
    neighbours: Neighbours,
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
        Self { entries: Slab::new(), classes: Vec::new(), next: 0 }
    }
}

impl<R> Linked for Slab<Entry<R>> {
    fn neighbours(&mut self, place: Place) -> &mut Neighbours {
        &mut self[place as usize].neighbours
    }
}

impl<R> Posted<R> {
    /// Posts a receive behind the others.
    pub fn post(&mut self, pattern: Pattern, receive: R) -> PostedId {
        let order = self.next;
        self.next += 1;
        let entry = Entry { order, pattern, neighbours: Neighbours::NONE, receive };
        let place = self.entries.insert(entry) as Place;
        let class = pattern.class();
        let at = self.classes.iter().position(|(of, _)| *of == class).unwrap_or_else(|| {
            self.classes.push((class, Lists::default()));
            self.classes.len() - 1
        });
        self.classes[at].1.push(pattern.key(), place, &mut self.entries);
        PostedId { place, order }
    }

    /// Takes the receive that was posted first of those that take a message.
    pub fn take_for(&mut self, message: Envelope) -> Option<R> {
        let place = self.find_for(message)?;
        Some(self.remove(place))
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
        firsts.min().map(|(_, place)| place)
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
        let pattern = self.entries[place as usize].pattern;
        let class = pattern.class();
        let at = self.classes.iter().position(|(of, _)| *of == class);
        let at = at.expect("the class of a receive exists while the receive waits");
        let lists = &mut self.classes[at].1;
        lists.remove(pattern.key(), place, &mut self.entries);
        if lists.is_empty() {
            self.classes.swap_remove(at);
        }
        self.entries.remove(place as usize).receive
    }
}
