//! What is going to happen, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Time;
use crate::lane::{Flight, LaneId};
use crate::network::{StationId, SwitchId};
use crate::switch::Port;
use crate::timers::Timers;

/// Something that happens in the network.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A station's timer goes off.
    Woke(StationId),
    /// The last bit of the first frame in a lane's queue leaves.
    Departed(LaneId),
    /// A frame is at the end of a lane.
    Arrived(LaneId, Flight),
    /// A frame that came in at a port has gone through the switch.
    Crossed(SwitchId, Port, Flight),
}

/// Everything that will happen, by time; what falls on one moment, in the order in which it was
/// entered here.
#[derive(Debug)]
pub(crate) struct Agenda {
    entries: BinaryHeap<Entry>,
    timers: Timers,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    turn: u64,
    what: Happening,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        Self { entries: BinaryHeap::new(), timers: Timers::new(), turn: 0 }
    }

    pub(crate) fn add_station(&mut self) {
        self.timers.add_station();
    }

    pub(crate) fn enter(&mut self, at: Time, what: Happening) {
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

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let entry = self.entries.peek().map(|entry| entry.at);
        let timer = self.timers.first().map(|(at, ..)| at);
        [entry, timer].into_iter().flatten().min()
    }

    /// Takes what happens next, if it happens no later than `until`.
    pub(crate) fn take(&mut self, until: Time) -> Option<(Time, Happening)> {
        let entry = self.entries.peek().map(|entry| (entry.at, entry.turn));
        if let Some((at, turn, station)) = self.timers.first()
            && entry.is_none_or(|entry| (at, turn) < entry)
        {
            if at > until {
                return None;
            }
            self.timers.clear(station);
            return Some((at, Happening::Woke(StationId(station))));
        }
        entry.filter(|(at, _)| *at <= until)?;
        self.entries.pop().map(|entry| (entry.at, entry.what))
    }

    /// Strikes out what is not to be kept, and returns how many frames were lost by that.
    pub(crate) fn strike_out(&mut self, lost: impl Fn(&Happening) -> bool) -> u64 {
        let before = self.in_flight();
        self.entries.retain(|entry| !lost(&entry.what));
        (before - self.in_flight()) as u64
    }

    /// The frames that are on a cable or inside a switch.
    pub(crate) fn in_flight(&self) -> usize {
        let carries =
            |entry: &&Entry| matches!(entry.what, Happening::Arrived(..) | Happening::Crossed(..));
        self.entries.iter().filter(carries).count()
    }
}

/// The heap gives out the greatest first: the earliest is the greatest.
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
