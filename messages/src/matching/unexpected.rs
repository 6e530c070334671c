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
    turn: Turn,
    envelope: Envelope,
    /// The neighbours in the lists of each class, by the number of the class's column.
    columns: [Neighbours; MOST_CLASSES],
    message: M,
}

/// The place of a message among all that wait: by arrival, and among those of one sender as they
/// were sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Turn {
    /// The place in the order of arrival. Messages of one sender may share a place.
    pub arrival: u64,
    /// The place in the order in which the sender has sent its messages.
    pub sent: u64,
}

/// Names a message that waits, for as long as the user likes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageId {
    place: Place,
    turn: Turn,
}

/// A message that a receive has taken.
#[derive(Debug)]
pub struct Taken<M> {
    pub turn: Turn,
    pub envelope: Envelope,
    pub message: M,
}

/// The entries, with the neighbours in the lists of one class.
struct Column<'e, M>(&'e mut Slab<Entry<M>>, usize);

impl<M> Linked for Column<'_, M> {
    type Order = Turn;

    fn neighbours(&mut self, place: Place) -> &mut Neighbours {
        &mut self.0[place as usize].columns[self.1]
    }

    fn order(&self, place: Place) -> Turn {
        self.0[place as usize].turn
    }
}

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Self { entries: Slab::new(), classes: Vec::new(), next: 0 }
    }
}

impl<M> Unexpected<M> {
    /// Returns the turn of a message that comes now, as the one with the number `sent` of its
    /// sender, and does not wait here.
    pub fn next_turn(&mut self, sent: u64) -> Turn {
        self.next += 1;
        Turn { arrival: self.next - 1, sent }
    }

    /// Puts a message back that was taken: where it was in the order of arrival, but behind those
    /// of its sender that were sent before it, and before those that were sent after it.
    pub fn put_back(&mut self, taken: Taken<M>) -> MessageId {
        let Taken { turn, envelope, message } = taken;
        let of_sender = self.entries.iter().map(|(_, entry)| entry);
        let of_sender = of_sender.filter(|entry| entry.envelope.source == envelope.source);
        let (mut after, mut before) = (turn.arrival, u64::MAX);
        for Entry { turn: of, .. } in of_sender {
            match of.sent < turn.sent {
                true => after = after.max(of.arrival),
                false => before = before.min(of.arrival),
            }
        }
        let turn = Turn { arrival: after.min(before), ..turn };
        self.insert(Taken { turn, envelope, message })
    }

    /// Puts a message exactly in its turn.
    pub fn insert(&mut self, Taken { turn, envelope, message }: Taken<M>) -> MessageId {
        let columns = [Neighbours::NONE; MOST_CLASSES];
        self.makes_room();
        let place = self.entries.insert(Entry { turn, envelope, columns, message }) as Place;
        for (class, column, lists) in &mut self.classes {
            let key = class.key_of(envelope);
            lists.insert(key, place, &mut Column(&mut self.entries, *column));
        }
        MessageId { place, turn }
    }

    /// Puts a message behind those that came before, as the one with the number `sent` of its
    /// sender, all of whose messages here have lesser numbers.
    pub fn put(&mut self, envelope: Envelope, sent: u64, message: M) -> MessageId {
        let (columns, turn) = ([Neighbours::NONE; MOST_CLASSES], self.next_turn(sent));
        let entry = Entry { turn, envelope, columns, message };
        self.makes_room();
        let place = self.entries.insert(entry) as Place;
        for (class, column, lists) in &mut self.classes {
            let key = class.key_of(envelope);
            lists.push(key, place, &mut Column(&mut self.entries, *column));
        }
        MessageId { place, turn }
    }

    /// Makes room for a message if there is none, and for a quarter more than there are. Vectors
    /// would double, and half of their memory would serve nothing.
    fn makes_room(&mut self) {
        let len = self.entries.len();
        if len == self.entries.capacity() {
            self.entries.reserve_exact((len / 4).max(8));
        }
    }

    /// Takes a message out, unless a receive has taken it before.
    pub fn remove(&mut self, id: MessageId) -> Option<M> {
        let entry = self.entries.get(id.place as usize)?;
        (entry.turn == id.turn).then(|| self.take_at(id.place).message)
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
        let Entry { turn, message, .. } = self.entries.remove(place as usize);
        Taken { turn, envelope, message }
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
        let mut places: Vec<_> = self.entries.iter().map(|(place, of)| (of.turn, place)).collect();
        places.sort_unstable();
        let mut lists = Lists::default();
        for (_, place) in places {
            let key = class.key_of(self.entries[place].envelope);
            lists.push(key, place as Place, &mut Column(&mut self.entries, column));
        }
        self.classes.insert(0, (class, column, lists));
    }
}
