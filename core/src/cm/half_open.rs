//! Half-open connections: those that peers have requested and that are not established yet. This
//! list bounds how many there may be, and chooses which one is recycled when there are too many.
//!
//! A request costs its sender one packet, whose source address proves nothing. So a stranger can
//! send as many requests as the network carries, from as many addresses as there are: a flood, like
//! a SYN flood of TCP's (RFC 4987). What such requests hold here is bounded in number and in time,
//! and shared fairly: the way that has the most half-open connections loses its oldest first, of
//! those that the program has not accepted if there are such. Established connections are not
//! touched.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::time::Time;

use super::keyed_hash::KeyedHash;
use super::services::ListenerKey;

/// The divisor of a connection's grace when a request comes by a way that has no half-open
/// connection.
const GRACE_TO_OTHERS: u32 = 5;

/// A half-open connection in the list.
struct Entry {
    /// The place of the connection in the manager's table.
    place: u32,
    /// The index in `ways` of the way that the request came by.
    way: u32,
    /// The time at which the request came.
    since: Time,
    /// The listener in whose backlog the request counts, until the program has decided.
    listener: Option<ListenerKey>,
}

/// A way by which half-open connections were requested, and their number.
struct Counted<W> {
    way: W,
    count: usize,
}

/// The list of half-open connections, in the order in which they were requested.
pub(super) struct HalfOpen<W> {
    entries: VecDeque<Entry>,
    /// The ways of the entries. An unused slot is `None`.
    ways: Vec<Option<Counted<W>>>,
    /// The index in `ways` of each way.
    numbers: HashMap<W, u32, KeyedHash>,
}

impl<W: Clone + Eq + Hash> HalfOpen<W> {
    /// Makes an empty list, whose hash table is keyed by `secret`.
    pub fn new(secret: u64) -> Self {
        let numbers = HashMap::with_hasher(KeyedHash(secret));
        Self { entries: VecDeque::new(), ways: Vec::new(), numbers }
    }

    /// Returns the number of half-open connections.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many half-open connections were requested by a way.
    fn count(&self, way: &W) -> usize {
        self.numbers.get(way).map_or(0, |&number| self.count_of(number))
    }

    /// Returns how many half-open connections the way at an index of `ways` has.
    fn count_of(&self, number: u32) -> usize {
        self.ways[number as usize].as_ref().map_or(0, |way| way.count)
    }

    /// Appends a connection that was requested by `way`, and counts in a listener's backlog.
    pub fn add(&mut self, place: u32, way: &W, listener: ListenerKey, since: Time) {
        let number = match self.numbers.get(way) {
            Some(&number) => number,
            None => self.new_way(way),
        };
        if let Some(way) = &mut self.ways[number as usize] {
            way.count += 1;
        }
        let listener = Some(listener);
        self.entries.push_back(Entry { place, way: number, since, listener });
    }

    /// Gives a way an index in `ways`.
    fn new_way(&mut self, way: &W) -> u32 {
        let free = self.ways.iter().position(Option::is_none).unwrap_or(self.ways.len());
        self.ways.resize_with(self.ways.len().max(free + 1), || None);
        self.ways[free] = Some(Counted { way: way.clone(), count: 0 });
        self.numbers.insert(way.clone(), free as u32);
        free as u32
    }

    /// Notes that the program has decided about a connection. Returns the listener in whose backlog
    /// the request counted until now.
    pub fn decided(&mut self, place: u32) -> Option<ListenerKey> {
        self.entries.iter_mut().find(|entry| entry.place == place)?.listener.take()
    }

    /// Removes a connection, which is established or over. Returns the listener in whose backlog the
    /// request counted, if the connection was listed and the program had not decided.
    pub fn remove(&mut self, place: u32) -> Option<ListenerKey> {
        let at = self.entries.iter().position(|entry| entry.place == place)?;
        let entry = self.entries.remove(at)?;
        let counted = &mut self.ways[entry.way as usize];
        if let Some(way) = counted {
            way.count -= 1;
            if way.count == 0 {
                self.numbers.remove(&way.way);
                *counted = None;
            }
        }
        entry.listener
    }

    /// Chooses the connection to recycle so that there is room for a request that came by `way`:
    /// among all half-open connections, or among those in a listener's backlog.
    ///
    /// It is one of the way that has the most: the oldest about which the program has not decided,
    /// or the oldest, if it has decided about all. A peer whose connection was accepted may use it
    /// already, while one that waits for an answer repeats its request. There is no choice if that
    /// way would still not have more than the newcomer's, and the connection is within its grace,
    /// which is shorter if the newcomer's way has no half-open connection yet.
    pub fn victim(
        &self,
        listener: Option<ListenerKey>,
        way: &W,
        grace: Duration,
        now: Time,
    ) -> Option<u32> {
        let among = |entry: &&Entry| listener.is_none() || entry.listener == listener;
        let candidates = || self.entries.iter().filter(among);
        let most = candidates().map(|entry| self.count_of(entry.way)).max()?;
        let of_most = || candidates().filter(|entry| self.count_of(entry.way) == most);
        let undecided = of_most().find(|entry| entry.listener.is_some());
        let oldest = undecided.or_else(|| of_most().next())?;
        let own = self.count(way);
        let takes_more = most > own + 1;
        let grace = if own == 0 { grace / GRACE_TO_OTHERS } else { grace };
        (takes_more || now >= oldest.since + grace).then_some(oldest.place)
    }
}
