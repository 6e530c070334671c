//! Messages that have come before their receives.

use slab::Slab;

use super::lists::{Linked, Lists, Neighbours, Place};
use super::pattern::{Class, Envelope, Pattern};

/// The most classes of patterns by which messages are listed. A pattern of a further class takes
/// the place of the class that was asked for longest ago, which costs a look at all messages.
const MOST_CLASSES: usize = 8;

/// Messages that no receive has taken, in the order in which they came.
///
/// They are listed by each [`Class`] of pattern that receives have asked for, so that a receive of
/// such a class finds its message at once, however many wait.
#[derive(Debug)]
pub struct Unexpected<M> {
    entries: Slab<Entry<M>>,
    /// Classes and their lists. Those that were asked for last come first.
    classes: Vec<(Class, usize, Lists)>,
    next: u64,
}

#[derive(Debug)]
struct Entry<M> {
    /// The place of the message in the order of arrival.
    order: u64,
    envelope: Envelope,
    /// The neighbours in the lists of each class, by the number of the class's column.
    columns: [Neighbours; MOST_CLASSES],
    message: M,
}

/// Names a message that waits, for as long as the user likes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageId {
    place: Place,
    order: u64,
}

/// A message that a receive has taken.
#[derive(Debug)]
pub struct Taken<M> {
    /// The place of the message in the order of arrival.
    pub order: u64,
    pub envelope: Envelope,
    pub message: M,
}

/// The entries, with the neighbours in the lists of one class.
struct Column<'e, M>(&'e mut Slab<Entry<M>>, usize);

impl<M> Linked for Column<'_, M> {
    fn neighbours(&mut self, place: Place) -> &mut Neighbours {
        &mut self.0[place as usize].columns[self.1]
    }

    fn order(&self, place: Place) -> u64 {
        self.0[place as usize].order
    }
}

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Self { entries: Slab::new(), classes: Vec::new(), next: 0 }
    }
}

impl<M> Unexpected<M> {
    /// Returns the place in the order of arrival of a message that comes now, and does not wait
    /// here.
    pub fn next_order(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Puts a message back that was taken, where it was in the order of arrival.
    pub fn put_back(&mut self, Taken { order, envelope, message }: Taken<M>) {
        let columns = [Neighbours::NONE; MOST_CLASSES];
        let place = self.entries.insert(Entry { order, envelope, columns, message }) as Place;
        for (class, column, lists) in &mut self.classes {
            let key = class.key_of(envelope);
            lists.insert(key, place, &mut Column(&mut self.entries, *column));
        }
    }

    /// Puts a message behind those that came before.
    pub fn put(&mut self, envelope: Envelope, message: M) -> MessageId {
        let (columns, order) = ([Neighbours::NONE; MOST_CLASSES], self.next_order());
        let entry = Entry { order, envelope, columns, message };
        let place = self.entries.insert(entry) as Place;
        for (class, column, lists) in &mut self.classes {
            let key = class.key_of(envelope);
            lists.push(key, place, &mut Column(&mut self.entries, *column));
        }
        MessageId { place, order }
    }

    /// Takes a message out, unless a receive has taken it before.
    pub fn remove(&mut self, id: MessageId) -> Option<M> {
        let entry = self.entries.get(id.place as usize)?;
        (entry.order == id.order).then(|| self.take_at(id.place).message)
    }

    /// Takes the message that came first of those that a pattern takes.
    pub fn take(&mut self, pattern: Pattern) -> Option<Taken<M>> {
        self.find(pattern).map(|place| self.take_at(place))
    }

    fn take_at(&mut self, place: Place) -> Taken<M> {
        let envelope = self.entries[place as usize].envelope;
        for (class, column, lists) in &mut self.classes {
            let key = class.key_of(envelope);
            lists.remove(key, place, &mut Column(&mut self.entries, *column));
        }
        let Entry { order, message, .. } = self.entries.remove(place as usize);
        Taken { order, envelope, message }
    }

    /// Returns the message that came first of those that a pattern takes, and leaves it.
    pub fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, &M)> {
        let place = self.find(pattern)?;
        let entry = &self.entries[place as usize];
        Some((entry.envelope, &entry.message))
    }

    /// Returns how many messages wait.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn find(&mut self, pattern: Pattern) -> Option<Place> {
        if self.entries.is_empty() {
            return None;
        }
        let class = pattern.class();
        match self.classes.iter().position(|(of, ..)| *of == class) {
            Some(at) => self.classes[..=at].rotate_right(1),
            None => self.list_by(class),
        }
        self.classes[0].2.first(&pattern.key())
    }

    /// Lists all messages by a class, which becomes the first.
    fn list_by(&mut self, class: Class) {
        let column = match self.classes.len() {
            MOST_CLASSES => self.classes.pop().expect("there are as many as may be").1,
            fewer => fewer,
        };
        let mut places: Vec<_> = self.entries.iter().map(|(place, of)| (of.order, place)).collect();
        places.sort_unstable();
        let mut lists = Lists::default();
        for (_, place) in places {
            let key = class.key_of(self.entries[place].envelope);
            lists.push(key, place as Place, &mut Column(&mut self.entries, column));
        }
        self.classes.insert(0, (class, column, lists));
    }
}
