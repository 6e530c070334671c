//! The way of a frame through the network, from one event to the next.

use crate::Time;
use crate::ids::{LaneId, StationId, SwitchId, SwitchPort};
use crate::network::event_queue::QueuedEvent;
use crate::network::trace::StationEvent;
use crate::network::{Event, Network};
use crate::parts::ecn;
use crate::parts::faults::corrupt;
use crate::parts::lane::{CableEnd, Departure, Flight};
use crate::parts::switch::Route;
use crate::random::Luck;

impl Network {
    pub(crate) fn send_frame(&mut self, from: StationId, frame: Vec<u8>) {
        self.counters.sent += 1;
        self.trace.take(self.now, StationEvent::Sent, from.0, &frame);
        self.recording.see(self.now, &frame);
        match self.stations[from.index()] {
            Some(out) => {
                let flight = Flight { frame, origin: from, hops: 0, altered: false, flow: None };
                self.join(out, Box::new(flight));
            }
            None => self.counters.undeliverable += 1,
        }
    }

    /// Carries out an event, and returns what a station experiences by it.
    pub(crate) fn happen(&mut self, what: QueuedEvent) -> Option<(StationId, Event)> {
        match what {
            QueuedEvent::Woke(station) => {
                self.trace.take(self.now, StationEvent::Woke, station.0, &[]);
                return Some((station, Event::Wake));
            }
            QueuedEvent::Departed(lane) => {
                self.depart(lane);
                self.begin(lane);
            }
            QueuedEvent::Arrived(lane, flight) => match self.lanes[lane.index()].to {
                CableEnd::Station(station) => return self.deliver(station, *flight),
                CableEnd::Switch(switch, port) => {
                    let across = self.now + self.switches[switch.index()].config.latency;
                    self.events.cross_at(across, switch, port, flight);
                }
            },
            QueuedEvent::Crossed(switch, port, flight) => self.forward(switch, port, flight),
        }
        None
    }

    /// Puts a frame into the queue of a lane, unless the frame is too long or the queue is full.
    fn join(&mut self, id: LaneId, mut flight: Box<Flight>) {
        let lane = &mut self.lanes[id.index()];
        if !lane.fits(&flight.frame) {
            self.counters.oversized += 1;
            return;
        }
        if let CableEnd::Switch(switch, _) = lane.from {
            let config = &self.switches[switch.index()].config;
            let waiting = lane.queued_bytes();
            if waiting + flight.frame.len() > config.buffer {
                self.counters.tail_dropped += 1;
                return;
            }
            let congested = config.ecn_threshold.is_some_and(|threshold| waiting > threshold);
            if congested && ecn::mark(&mut flight.frame) {
                self.counters.marked += 1;
                flight.altered = true;
            }
        }
        if lane.join(flight) {
            self.begin(id);
        }
    }

    /// Begins to send the first frame of a lane's queue, and those behind it that take no time.
    fn begin(&mut self, id: LaneId) {
        loop {
            match self.lanes[id.index()].begin() {
                Departure::Idle => return,
                Departure::AtOnce => self.depart(id),
                Departure::Takes(time) => {
                    return self.events.depart_at(self.now + time, id);
                }
            }
        }
    }

    /// Ends the departure of a lane's first frame, whose last bit has left, and draws the frame's
    /// faults.
    fn depart(&mut self, id: LaneId) {
        let lane = &mut self.lanes[id.index()];
        let Some(flight) = lane.depart() else { return };
        if !lane.whole {
            self.counters.cut += 1;
            return;
        }
        let arrival = self.now + lane.latency;
        let luck = lane.luck();
        if lane.faults.is_perfect() {
            return self.events.arrive_at(arrival, id, flight);
        }
        self.suffer(id, flight, arrival, luck);
    }

    /// Applies the faults that strike a frame.
    fn suffer(&mut self, id: LaneId, mut flight: Box<Flight>, arrival: Time, mut luck: Luck) {
        let outcome = self.lanes[id.index()].faults.draw(&mut luck);
        if outcome.lost {
            self.counters.lost += 1;
            return;
        }
        let copy = outcome.copy.map(|copied| (flight.clone(), copied));
        if outcome.corrupted {
            self.corrupt(&mut flight, &mut luck);
        }
        let mut held_back = arrival;
        if let Some(time) = outcome.held_back {
            self.counters.reordered += 1;
            held_back = arrival + time;
        }
        self.events.arrive_at(held_back, id, flight);
        if let Some((mut copy, copied)) = copy {
            self.counters.duplicated += 1;
            if copied.corrupted {
                self.corrupt(&mut copy, &mut luck);
            }
            self.events.arrive_at(arrival + copied.later, id, copy);
        }
    }

    fn corrupt(&mut self, flight: &mut Flight, luck: &mut Luck) {
        self.counters.corrupted += 1;
        (flight.altered, flight.flow) = (true, None);
        corrupt(&mut flight.frame, luck);
    }

    /// Forwards a frame that has crossed a switch.
    fn forward(&mut self, id: SwitchId, came_in: SwitchPort, mut flight: Box<Flight>) {
        flight.hops += 1;
        if flight.hops as usize > self.switches.len() {
            // On a path without a loop, a frame crosses each switch once.
            self.counters.looped += 1;
            return;
        }
        let Flight { frame, flow, .. } = &mut *flight;
        match self.switches[id.index()].route(came_in, frame, flow) {
            Route::To(lane) => self.join(lane, flight),
            Route::Flood => self.flood(id, came_in, flight),
            Route::Filter => self.counters.filtered += 1,
            Route::Nowhere => self.counters.undeliverable += 1,
        }
    }

    fn flood(&mut self, id: SwitchId, came_in: SwitchPort, flight: Box<Flight>) {
        let count = self.switches[id.index()].ports().len() as u32;
        let mut others = (0..count).filter(|port| *port != came_in.0);
        let Some(last) = others.next_back() else {
            self.counters.undeliverable += 1;
            return;
        };
        let out = |network: &Self, port: u32| network.switches[id.index()].ports()[port as usize];
        for port in others {
            self.counters.flooded += 1;
            self.join(out(self, port), flight.clone());
        }
        self.join(out(self, last), flight);
    }

    fn deliver(&mut self, station: StationId, flight: Flight) -> Option<(StationId, Event)> {
        if self.partitions.are_apart(flight.origin, station) {
            self.counters.partitioned += 1;
            return None;
        }
        self.counters.delivered += 1;
        self.trace.take(self.now, StationEvent::Arrived, station.0, &flight.frame);
        if flight.altered {
            self.recording.see(self.now, &flight.frame);
        }
        Some((station, Event::Frame(flight.frame)))
    }
}
