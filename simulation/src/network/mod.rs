//! The network as tests use it.
//!
//! `forwarding` is the way of a frame from one event to the next, and `event_queue` and `timers`
//! hold what is to come. `partition` says which stations can't reach each other. `counters`, `trace`
//! and `recording` keep what has happened: as numbers, as a fingerprint, and as a capture.

mod counters;
mod event_queue;
mod forwarding;
mod partition;
mod recording;
mod timers;
mod trace;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use doorbell_core::wire::Mac;

use crate::Time;
use crate::ids::{LaneId, LinkId, StationId, SwitchId};
use crate::parts::config::{LinkConfig, SwitchConfig};
use crate::parts::faults::FaultModel;
use crate::parts::lane::{CableEnd, Lane};
use crate::parts::switch::Switch;
pub use counters::Counters;
use event_queue::EventQueue;
use partition::Partitions;
use recording::Recording;
use trace::Trace;

/// An end of a cable: what the cable may be plugged into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// The interface of a station.
    Station(StationId),
    /// A new port of a switch.
    Switch(SwitchId),
}

impl From<StationId> for End {
    fn from(station: StationId) -> Self {
        Self::Station(station)
    }
}

impl From<SwitchId> for End {
    fn from(switch: SwitchId) -> Self {
        Self::Switch(switch)
    }
}

/// An event at a station.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A frame has arrived. A station has no address of its own: it gets all frames that come over
    /// its cable, those included that a switch has flooded.
    Frame(Vec<u8>),
    /// The station's timer has gone off, and is no longer set.
    Wake,
}

/// Stations, switches and cables, with the frames on them.
///
/// Numbers such as [`StationId`] of another network are a mistake, and may panic.
#[derive(Debug)]
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) events: EventQueue,
    /// The outgoing lane of each station, if a cable is plugged in.
    pub(crate) stations: Vec<Option<LaneId>>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) partitions: Partitions,
    pub(crate) counters: Counters,
    pub(crate) trace: Trace,
    pub(crate) recording: Recording,
}

/// Building a network of stations, switches and cables.
impl Network {
    /// Makes an empty network at time zero, in which all chance comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            events: EventQueue::new(),
            stations: Vec::new(),
            switches: Vec::new(),
            lanes: Vec::new(),
            partitions: Partitions::default(),
            counters: Counters::default(),
            trace: Trace::new(),
            recording: Recording::default(),
        }
    }

    /// Adds a station, which is in no set of a partition.
    pub fn station(&mut self) -> StationId {
        let id = StationId(self.stations.len() as u32);
        self.stations.push(None);
        self.events.add_station();
        self.partitions.add_station();
        id
    }

    /// Adds a switch without ports. The switch learns up to 8192 addresses and their ports, and
    /// floods frames to other addresses. Where switches form a loop, a flooded frame goes round
    /// until it has crossed as many switches as there are.
    pub fn switch(&mut self, config: SwitchConfig) -> SwitchId {
        let id = SwitchId(self.switches.len() as u32);
        self.switches.push(Switch::new(config, u64::from(id.0)));
        self.events.add_switch();
        id
    }

    /// Has a switch send frames to an address by one of some cables, which are of equal cost: the
    /// frames of a flow, with the same addresses and UDP ports, go by the same one. With routes to
    /// all stations, switches may form loops. A cable that is cut stays a choice, and what goes by it
    /// is lost.
    ///
    /// # Panics
    ///
    /// If there is no cable, or one is not plugged into the switch.
    pub fn add_route(&mut self, at: SwitchId, to: Mac, by: &[LinkId]) {
        let port = |link: &LinkId| {
            let ends = LaneId::both(*link).map(|lane| self.lanes[lane.index()].from);
            let port = ends.into_iter().find_map(|end| match end {
                CableEnd::Switch(switch, port) if switch == at => Some(port),
                _ => None,
            });
            port.unwrap_or_else(|| panic!("{link:?} is plugged into {at:?}"))
        };
        let ports: Box<[_]> = by.iter().map(port).collect();
        assert!(!ports.is_empty(), "a route leads somewhere");
        self.switches[at.index()].add_route(to, ports);
    }

    /// Connects two stations, two switches, or one of each by a cable.
    ///
    /// # Panics
    ///
    /// If a station has a cable already, or a value of the faults is no probability.
    pub fn link(&mut self, a: impl Into<End>, b: impl Into<End>, config: LinkConfig) -> LinkId {
        let link = LinkId(self.lanes.len() as u32 / 2);
        let [forth, back] = LaneId::both(link);
        let ends = [self.plug_in(a.into(), forth), self.plug_in(b.into(), back)];
        self.lanes.extend(Lane::pair(link, ends, &config, self.seed));
        (0..2).for_each(|_| self.events.add_lane());
        link
    }

    fn plug_in(&mut self, end: End, out: LaneId) -> CableEnd {
        match end {
            End::Station(id) => {
                let before = self.stations[id.index()].replace(out);
                assert!(before.is_none(), "{id:?} has one interface, and a cable in it already");
                CableEnd::Station(id)
            }
            End::Switch(id) => CableEnd::Switch(id, self.switches[id.index()].add_port(out)),
        }
    }
}

/// Disturbing the network by changed and cut cables, partitions, restarts.
impl Network {
    /// Changes the configuration of a cable, even in the middle of a run. Frames that are on the
    /// cable arrive when they would have, the frame whose bits are leaving leaves when it would
    /// have, and frames that wait behind it have the new configuration, except that they were let
    /// in by the old MTU.
    ///
    /// # Panics
    ///
    /// If a value of the faults is no probability.
    pub fn reconfigure(&mut self, link: LinkId, config: LinkConfig) {
        let models = [FaultModel::new(&config.forth), FaultModel::new(&config.back)];
        for (lane, faults) in LaneId::both(link).into_iter().zip(models) {
            self.lanes[lane.index()].reconfigure(&config, faults);
        }
    }

    /// Cuts a cable in both directions. The frames on the cable are lost, and so are all that leave
    /// for it until it is healed.
    pub fn cut(&mut self, link: LinkId) {
        for lane in LaneId::both(link) {
            self.lanes[lane.index()].whole = false;
            self.counters.cut += self.events.clear_lane(lane);
        }
    }

    /// Repairs a cable that was cut.
    pub fn heal(&mut self, link: LinkId) {
        for lane in LaneId::both(link) {
            self.lanes[lane.index()].whole = true;
        }
    }

    /// Separates the stations of `set` from the others: from now on no frame is delivered that was
    /// sent on one side and arrives on the other. Several partitions may be in force at once; a
    /// frame must be able to pass all of them at its arrival.
    pub fn partition(&mut self, set: &[StationId]) {
        self.partitions.divide(set);
    }

    /// Ends all partitions in force.
    pub fn heal_partitions(&mut self) {
        self.partitions.heal();
    }

    /// Switches a station off and on. Its timer is cleared. Lost are the frames on the station's
    /// cable towards the station, those that wait to get onto that cable, and those that wait at
    /// the station's own interface. Frames that the station has sent earlier stay on their way, and
    /// frames to the station from further away may still come.
    pub fn restart(&mut self, station: StationId) {
        self.events.wake_at(station, None);
        let Some(out) = self.stations[station.index()] else { return };
        let back = out.opposite();
        for lane in [out, back] {
            self.counters.restarted += self.lanes[lane.index()].clear();
            self.events.clear_departure(lane);
        }
        self.counters.restarted += self.events.clear_lane(back);
    }
}

/// Running the network, event by event.
impl Network {
    /// The virtual time of the network.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a frame, from its Ethernet header on and without the checksum. The frame leaves now,
    /// or as soon as those before it have left. The queue of a station's interface has no limit.
    pub fn send(&mut self, from: StationId, frame: Vec<u8>) {
        self.send_frame(from, frame);
    }

    /// Sets or clears a station's only timer, which forgets its former time. A timer that is set to
    /// a past time goes off now.
    pub fn wake_at(&mut self, station: StationId, at: Option<Time>) {
        let now = self.now;
        self.events.wake_at(station, at.map(|at| at.max(now)));
    }

    /// Goes on to the next event of a station, and returns the event. Without an event up to and
    /// including `until`, time goes on to `until`; it never goes back. Events at the same moment
    /// happen in the order in which they were caused.
    pub fn step(&mut self, until: Time) -> Option<(StationId, Event)> {
        while let Some((at, what)) = self.events.take(until) {
            self.now = at;
            let event = self.happen(what);
            if event.is_some() {
                return event;
            }
        }
        self.now = self.now.max(until);
        None
    }

    /// The time of the next event, even if it is only inside the network; `None` if nothing will
    /// happen by itself.
    pub fn next_at(&self) -> Option<Time> {
        self.events.next_at()
    }

    /// The bytes of the frames that wait for a cable at its first and at its second end, without
    /// those that are being sent.
    pub fn queued_bytes(&self, link: LinkId) -> [usize; 2] {
        LaneId::both(link).map(|lane| self.lanes[lane.index()].queued_bytes())
    }

    /// The number of frames that are on their way, waiting frames included.
    pub fn in_flight(&self) -> usize {
        let waiting: usize = self.lanes.iter().map(Lane::queued_frames).sum();
        waiting + self.events.in_flight()
    }
}

/// Observing the network by counters, fingerprints, captures.
impl Network {
    /// The counts of frames by what has become of them so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A fingerprint of all events at stations: of each frame sent, each frame delivered and each
    /// timer that went off, with the time, the station and the bytes. The same seed and the same
    /// calls give the same fingerprint on every machine.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Takes nothing more into the [fingerprint](Self::trace_hash), which reads each byte of each
    /// frame: a long run whose figures are compared needs none.
    pub fn stop_tracing(&mut self) {
        self.trace.is_off = true;
    }

    /// Begins or continues to record frames, for [`pcap`](Self::pcap). A capture of more than
    /// `limit` bytes loses its oldest frames; the memory for it has about 50 bytes more per frame.
    ///
    /// A frame is recorded as it was sent, when it was sent, whatever becomes of it. If the frame
    /// arrives corrupted or marked, it is recorded again when it arrives.
    pub fn start_recording(&mut self, limit: usize) {
        self.recording.start(limit);
    }

    /// Ends the recording, and keeps the recorded frames.
    pub fn stop_recording(&mut self) {
        self.recording.stop();
    }

    /// The recorded frames as the contents of a capture file, with virtual time as the time since
    /// 1970.
    pub fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        self.recording.write(&mut file).expect("writing to memory does not fail");
        file
    }

    /// Writes the recorded frames to a capture file.
    pub fn write_pcap(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.recording.write(BufWriter::new(File::create(path)?))
    }
}
