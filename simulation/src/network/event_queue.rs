//! The future events of the network, in their order.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

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
///
/// The frames on a lane arrive in the order in which they left, but for those that are held back,
/// and those in a switch cross it in the order in which they came. So each lane and each switch has
/// a queue of its own, of which only the first frame is among the entries: of these there are as
/// many as lanes, and not as many as frames.
#[derive(Debug)]
pub(crate) struct EventQueue {
    entries: BinaryHeap<Entry>,
    /// The frames on each lane.
    lanes: Vec<VecDeque<Queued<()>>>,
    /// The frames in each switch, and the ports by which they have come.
    switches: Vec<VecDeque<Queued<SwitchPort>>>,
    timers: Timers,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    turn: u64,
    what: What,
}

/// An event in the heap: of a lane or a switch with a queue of its own, the first one alone.
#[derive(Debug)]
enum What {
    Departed(LaneId),
    /// The first frame on a lane arrives.
    FirstArrived(LaneId),
    /// The first frame in a switch has crossed it.
    FirstCrossed(SwitchId),
    /// A frame arrives out of the order in which it left.
    Arrived(LaneId, Box<Flight>),
}

/// A frame in the queue of a lane or a switch.
#[derive(Debug)]
struct Queued<T> {
    at: Time,
    turn: u64,
    with: T,
    flight: Box<Flight>,
}

impl<T> Queued<T> {
    fn entry(&self, what: What) -> Entry {
        Entry { at: self.at, turn: self.turn, what }
    }
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self {
            entries: BinaryHeap::new(),
            lanes: Vec::new(),
            switches: Vec::new(),
            timers: Timers::new(),
            turn: 0,
        }
    }

    pub(crate) fn add_station(&mut self) {
        self.timers.add_station();
    }

    pub(crate) fn add_lane(&mut self) {
        self.lanes.push(VecDeque::new());
    }

    pub(crate) fn add_switch(&mut self) {
        self.switches.push(VecDeque::new());
    }

    /// Has the first frame in a lane's queue leave.
    pub(crate) fn depart_at(&mut self, at: Time, lane: LaneId) {
        let turn = self.next_turn();
        self.entries.push(Entry { at, turn, what: What::Departed(lane) });
    }

    /// Has a frame arrive at the end of a lane.
    pub(crate) fn arrive_at(&mut self, at: Time, lane: LaneId, flight: Box<Flight>) {
        let turn = self.next_turn();
        let queue = &mut self.lanes[lane.index()];
        if queue.back().is_some_and(|last| last.at > at) {
            return self.entries.push(Entry { at, turn, what: What::Arrived(lane, flight) });
        }
        let frame = Queued { at, turn, with: (), flight };
        if queue.is_empty() {
            self.entries.push(frame.entry(What::FirstArrived(lane)));
        }
        queue.push_back(frame);
    }

    /// Has a frame have crossed a switch.
    pub(crate) fn cross_at(
        &mut self,
        at: Time,
        switch: SwitchId,
        came_in: SwitchPort,
        flight: Box<Flight>,
    ) {
        let turn = self.next_turn();
        let queue = &mut self.switches[switch.index()];
        let frame = Queued { at, turn, with: came_in, flight };
        if queue.is_empty() {
            self.entries.push(frame.entry(What::FirstCrossed(switch)));
        }
        queue.push_back(frame);
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
        let (at, _) = entry.filter(|(at, _)| *at <= until)?;
        Some((at, self.take_entry()?))
    }

    /// Takes the first entry. The frame behind it in its queue takes its place.
    fn take_entry(&mut self) -> Option<QueuedEvent> {
        let mut first = self.entries.peek_mut()?;
        let next = match first.what {
            What::FirstArrived(lane) => {
                let queue = &mut self.lanes[lane.index()];
                let frame = queue.pop_front()?;
                let next = queue.front().map(|next| next.entry(What::FirstArrived(lane)));
                Some((QueuedEvent::Arrived(lane, frame.flight), next))
            }
            What::FirstCrossed(switch) => {
                let queue = &mut self.switches[switch.index()];
                let frame = queue.pop_front()?;
                let next = queue.front().map(|next| next.entry(What::FirstCrossed(switch)));
                Some((QueuedEvent::Crossed(switch, frame.with, frame.flight), next))
            }
            What::Departed(_) | What::Arrived(..) => None,
        };
        match next {
            Some((event, Some(next))) => {
                *first = next;
                Some(event)
            }
            Some((event, None)) => {
                PeekMut::pop(first);
                Some(event)
            }
            None => match PeekMut::pop(first).what {
                What::Departed(lane) => Some(QueuedEvent::Departed(lane)),
                What::Arrived(lane, flight) => Some(QueuedEvent::Arrived(lane, flight)),
                What::FirstArrived(_) | What::FirstCrossed(_) => None,
            },
        }
    }

    /// Removes the frames on a lane, and returns how many they were.
    pub(crate) fn clear_lane(&mut self, lane: LaneId) -> u64 {
        let before = self.in_flight();
        self.lanes[lane.index()].clear();
        self.entries.retain(|entry| match entry.what {
            What::FirstArrived(on) | What::Arrived(on, _) => on != lane,
            What::Departed(_) | What::FirstCrossed(_) => true,
        });
        (before - self.in_flight()) as u64
    }

    /// Has no frame leave the queue of a lane.
    pub(crate) fn clear_departure(&mut self, lane: LaneId) {
        self.entries.retain(|entry| !matches!(entry.what, What::Departed(from) if from == lane));
    }

    /// The number of frames that are on a cable or inside a switch.
    pub(crate) fn in_flight(&self) -> usize {
        let on_lanes: usize = self.lanes.iter().map(VecDeque::len).sum();
        let in_switches: usize = self.switches.iter().map(VecDeque::len).sum();
        let held_back = |entry: &&Entry| matches!(entry.what, What::Arrived(..));
        on_lanes + in_switches + self.entries.iter().filter(held_back).count()
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
