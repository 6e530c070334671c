//! The future events of the network, in their order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Time;
use crate::ids::{LaneId, StationId, SwitchId, SwitchPort};
use crate::network::timers::Timers;
use crate::parts::lane::Flight;

/// An event in the network.
#[derive(Debug)]
pub(crate) enum QueuedEvent {
    /// The timer of a station goes off.
    Woke(StationId),
    /// The last bit of the first frame in a lane's queue leaves.
    Departed(LaneId),
    /// A frame arrives at the end of a lane.
    Arrived(LaneId, Box<Flight>),
    /// A frame has crossed a switch, which it has entered by this port.
    Crossed(SwitchId, SwitchPort, Box<Flight>),
}

/// The future events by time. Events at the same moment are in the order in which they were added.
#[derive(Debug)]
pub(crate) struct EventQueue {
    entries: BinaryHeap<Entry>,
    timers: Timers,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    turn: u64,
    what: QueuedEvent,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self { entries: BinaryHeap::new(), timers: Timers::new(), turn: 0 }
    }

    pub(crate) fn add_station(&mut self) {
        self.timers.add_station();
    }

    pub(crate) fn enter(&mut self, at: Time, what: QueuedEvent) {
        let turn = self.next_turn();
        self.entries.push(Entry { at, turn, what });
    }

    pub(crate) fn wake_at(&mut self, station: StationId, at: Option<Time>) {
        match at {
            Some(at) => {
                let turn = self.next_turn();
                self.timers.set(station.0, at, turn);
            }
            None => self.timers.clear(station.0),
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// The time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let entry = self.entries.peek().map(|entry| entry.at);
        let timer = self.timers.first().map(|(at, ..)| at);
        [entry, timer].into_iter().flatten().min()
    }

    /// Takes the next event if it happens no later than `until`.
    pub(crate) fn take(&mut self, until: Time) -> Option<(Time, QueuedEvent)> {
        let entry = self.entries.peek().map(|entry| (entry.at, entry.turn));
        if let Some((at, turn, station)) = self.timers.first()
            && entry.is_none_or(|entry| (at, turn) < entry)
        {
            if at > until {
                return None;
            }
            self.timers.clear(station);
            return Some((at, QueuedEvent::Woke(StationId(station))));
        }
        entry.filter(|(at, _)| *at <= until)?;
        self.entries.pop().map(|entry| (entry.at, entry.what))
    }

    /// Removes events, and returns how many frames were lost with them.
    pub(crate) fn remove(&mut self, is_lost: impl Fn(&QueuedEvent) -> bool) -> u64 {
        let before = self.in_flight();
        self.entries.retain(|entry| !is_lost(&entry.what));
        (before - self.in_flight()) as u64
    }

    /// The number of frames that are on a cable or inside a switch.
    pub(crate) fn in_flight(&self) -> usize {
        let carries = |entry: &&Entry| {
            matches!(entry.what, QueuedEvent::Arrived(..) | QueuedEvent::Crossed(..))
        };
        self.entries.iter().filter(carries).count()
    }
}

/// The heap returns the greatest entry first, so the earliest entry is the greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.turn).cmp(&(self.at, self.turn))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
