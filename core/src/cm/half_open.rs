//! Connections that peers have asked for and that do not stand yet: how many there may be, and
//! which one has to go when there are too many.
//!
//! A request costs its sender one packet, and nothing shows that it comes from where it says. So a
//! stranger can send as many as the network carries, from as many addresses as there are. What they
//! hold here is bounded by a number and by time, and shared fairly: the way that has the most of
//! these connections loses its oldest first. What stands is not touched.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::time::Time;
use crate::wire::ServiceId;

use super::ConnectionManager;
use super::connection::{Connection, State};
use super::event::{Event, Why};
use super::table::Keyed;
use crate::wire::cm::RejectReason;

/// Which listener's backlog a request is counted in: its service, and its number.
pub(super) type ListenerKey = (ServiceId, u64);

/// What part of its grace a connection keeps its place for when a request comes by a way that has
/// no half-open connection.
const GRACE_TO_OTHERS: u32 = 5;

struct Entry {
    place: u32,
    /// Which of the ways that are counted it came by.
    way: u32,
    since: Time,
    /// The listener, until the program has decided.
    listener: Option<ListenerKey>,
}

/// A way by which some of these connections were asked for, and how many.
struct Counted<W> {
    way: W,
    count: usize,
}

/// Half-open connections, in the order in which they were asked for.
pub(super) struct HalfOpen<W> {
    entries: VecDeque<Entry>,
    ways: Vec<Option<Counted<W>>>,
    numbers: HashMap<W, u32, Keyed>,
}

impl<W: Clone + Eq + Hash> HalfOpen<W> {
    pub fn new(secret: u64) -> Self {
        let numbers = HashMap::with_hasher(Keyed(secret));
        Self { entries: VecDeque::new(), ways: Vec::new(), numbers }
    }

    /// The number of half-open connections.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many of them were asked for by a way.
    fn count(&self, way: &W) -> usize {
        self.numbers.get(way).map_or(0, |&number| self.count_of(number))
    }

    fn count_of(&self, number: u32) -> usize {
        self.ways[number as usize].as_ref().map_or(0, |way| way.count)
    }

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

    fn new_way(&mut self, way: &W) -> u32 {
        let free = self.ways.iter().position(Option::is_none).unwrap_or(self.ways.len());
        self.ways.resize_with(self.ways.len().max(free + 1), || None);
        self.ways[free] = Some(Counted { way: way.clone(), count: 0 });
        self.numbers.insert(way.clone(), free as u32);
        free as u32
    }

    /// Notes that the program has decided. In which listener's backlog that had been counted.
    pub fn decided(&mut self, place: u32) -> Option<ListenerKey> {
        self.entries.iter_mut().find(|entry| entry.place == place)?.listener.take()
    }

    /// Takes off the list what stands, or is over. In which listener's backlog that was counted, if
    /// it was on the list, and the program had not decided.
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

    /// Which of them has to go so that there is room for a request that came by `way`: of all, or
    /// of those that a listener's program has not decided about. It is the oldest of the way that
    /// has the most. There is none if that way would not have more than the newcomer's even then,
    /// and the oldest is still in its grace, which is shorter if the newcomer's way has none yet.
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
        let oldest = candidates().find(|entry| self.count_of(entry.way) == most)?;
        let own = self.count(way);
        let takes_more = most > own + 1;
        let grace = if own == 0 { grace / GRACE_TO_OTHERS } else { grace };
        (takes_more || now >= oldest.since + grace).then_some(oldest.place)
    }
}

/// Making room among half-open connections.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Makes room for a request that came by `way`, among all half-open connections or among those
    /// that a listener's program has not decided about. Whether there is room then.
    pub(super) fn make_room(&mut self, listener: Option<ListenerKey>, way: &W) -> bool {
        let (grace, now) = (self.common.config.grace, self.common.now);
        let Some(victim) = self.half_open.victim(listener, way, grace, now) else { return false };
        self.crowd_out(victim);
        true
    }

    /// Gives up a half-open connection to make room, without a time-wait.
    ///
    /// The peer of one that is not decided hears nothing: it repeats its request, and may find room
    /// then. The peer of one that was accepted is told, for it may believe that the connection
    /// stands.
    fn crowd_out(&mut self, place: u32) {
        let Self { table, common, .. } = self;
        let Some(connection) = table.at(place) else { return };
        common.counters.crowded += 1;
        tracing::debug!(id = %connection.id.comm_id(), state = ?connection.state, "crowded out");
        if connection.state == State::ReplySent {
            connection.tell_crowded(common);
        }
        common.events.push_back(Event::Failed { id: connection.id, why: Why::Crowded });
        self.rest(place);
        self.release(place);
    }

    /// Has what never stood rest no longer when there is more of that than of half-open
    /// connections: a flood of requests is refused, or timed out, without end.
    pub(super) fn bound_rests(&mut self) {
        while self.resting.len() > self.common.config.half_open {
            let Some(oldest) = self.resting.pop_front() else { return };
            self.release(oldest);
        }
    }
}

impl<W: Clone> Connection<W> {
    fn tell_crowded(&mut self, common: &mut super::common::Common<W>) {
        if let Some(rej) = self.refusal(RejectReason::NO_RESOURCES, &[0; 8]) {
            self.say_once(rej, common);
        }
    }
}
