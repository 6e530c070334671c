//! The network as its user sees it.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::Time;
use crate::agenda::{Agenda, Happening};
use crate::config::{LinkConfig, SwitchConfig};
use crate::counters::Counters;
use crate::faults::Judge;
use crate::lane::{Lane, LaneId, Socket};
use crate::partition::Sides;
use crate::recording::Recording;
use crate::switch::Switch;
use crate::trace::Trace;

/// Declares what names a part of a network. It means nothing in another network.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Its number: they count up from zero in the order in which they were made.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

names! {
    /// A station of a [`Network`]: an end with one interface and one timer.
    StationId;
    /// A switch of a [`Network`].
    SwitchId;
    /// A cable of a [`Network`].
    LinkId;
}

/// What a cable may be plugged into.
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

/// What a station experiences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A frame arrived. A station has no address of its own: it gets what comes over its cable,
    /// what a switch flooded included.
    Frame(Vec<u8>),
    /// The timer went off, and is no longer set.
    Wake,
}

/// Stations, switches, cables, and what is on them.
///
/// Names ([`StationId`] and the like) of another network are a mistake, and may panic.
#[derive(Debug)]
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    /// The lane that goes out of each station, if a cable is plugged in.
    pub(crate) stations: Vec<Option<LaneId>>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) sides: Sides,
    pub(crate) counters: Counters,
    pub(crate) trace: Trace,
    pub(crate) recording: Recording,
}

/// Building.
impl Network {
    /// An empty network at time zero, in which all chance comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            agenda: Agenda::new(),
            stations: Vec::new(),
            switches: Vec::new(),
            lanes: Vec::new(),
            sides: Sides::default(),
            counters: Counters::default(),
            trace: Trace::new(),
            recording: Recording::default(),
        }
    }

    /// Adds a station, outside the sets of all partitions in force.
    pub fn station(&mut self) -> StationId {
        let id = StationId(self.stations.len() as u32);
        self.stations.push(None);
        self.agenda.add_station();
        self.sides.add_station();
        id
    }

    /// Adds a switch. It learns which addresses are behind which port, 8192 of them, and floods
    /// frames to others. Where switches form a loop, a frame that was flooded goes round it until
    /// it has crossed as many switches as there are.
    pub fn switch(&mut self, config: SwitchConfig) -> SwitchId {
        let id = SwitchId(self.switches.len() as u32);
        self.switches.push(Switch::new(config));
        id
    }

    /// Plugs in a cable between two stations, two switches, or one of each.
    ///
    /// # Panics
    ///
    /// If a station has a cable already, or a fault's probability is none.
    pub fn link(&mut self, a: impl Into<End>, b: impl Into<End>, config: LinkConfig) -> LinkId {
        let link = LinkId(self.lanes.len() as u32 / 2);
        let [forth, back] = LaneId::both(link);
        let ends = [self.plug_in(a.into(), forth), self.plug_in(b.into(), back)];
        self.lanes.extend(Lane::pair(link, ends, &config, self.seed));
        link
    }

    fn plug_in(&mut self, end: End, out: LaneId) -> Socket {
        match end {
            End::Station(id) => {
                let before = self.stations[id.index()].replace(out);
                assert!(before.is_none(), "{id:?} has one interface, and a cable in it already");
                Socket::Station(id)
            }
            End::Switch(id) => Socket::Switch(id, self.switches[id.index()].add_port(out)),
        }
    }
}

/// Trouble.
impl Network {
    /// Makes a cable another, also in the middle of a run. Frames that are on it arrive when they
    /// would have, the one whose bits are leaving leaves when it would have, and all that wait
    /// behind it know the new cable only, except that they were let in by the old MTU.
    ///
    /// # Panics
    ///
    /// If a fault's probability is none.
    pub fn reconfigure(&mut self, link: LinkId, config: LinkConfig) {
        let judges = [Judge::new(&config.forth), Judge::new(&config.back)];
        for (lane, judge) in LaneId::both(link).into_iter().zip(judges) {
            self.lanes[lane.index()].reconfigure(&config, judge);
        }
    }

    /// Cuts a cable. What is on it is lost, and so is whatever leaves for it until it is healed.
    pub fn cut(&mut self, link: LinkId) {
        for lane in LaneId::both(link) {
            self.lanes[lane.index()].whole = false;
            self.counters.cut += self
                .agenda
                .strike_out(|what| matches!(what, Happening::Arrived(on, _) if *on == lane));
        }
    }

    /// Makes a cable that was cut whole again.
    pub fn heal(&mut self, link: LinkId) {
        for lane in LaneId::both(link) {
            self.lanes[lane.index()].whole = true;
        }
    }

    /// From now on no frame is delivered that was sent on one side of the partition and arrives on
    /// the other: on the one side the stations of `set`, on the other the rest. Several partitions
    /// may be in force at once; a frame must be able to pass all of them at its arrival.
    pub fn partition(&mut self, set: &[StationId]) {
        self.sides.divide(set);
    }

    /// Ends all partitions.
    pub fn heal_partitions(&mut self) {
        self.sides.heal();
    }

    /// A station is switched off and on. Its timer is cleared. Lost is what is on its cable towards
    /// it, what waits to get onto that cable, and what waits at its own interface. What it sent
    /// earlier is on its way, and what others sent it may still come from further away.
    pub fn restart(&mut self, station: StationId) {
        self.agenda.wake_at(station, None);
        let Some(out) = self.stations[station.index()] else { return };
        let back = out.opposite();
        for lane in [out, back] {
            self.counters.restarted += self.lanes[lane.index()].clear();
        }
        self.counters.restarted += self.agenda.strike_out(|what| match what {
            Happening::Departed(from) => [out, back].contains(from),
            Happening::Arrived(on, _) => *on == back,
            _ => false,
        });
    }
}

/// Running.
impl Network {
    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a frame, from its Ethernet header on and without the check sum. It leaves now, or as
    /// soon as those before it have left; a station's interface holds as many as are sent.
    pub fn send(&mut self, from: StationId, frame: Vec<u8>) {
        self.send_frame(from, frame);
    }

    /// Sets a station's one timer, or clears it. Whatever it was set to before is forgotten. Set to
    /// a time that is past, it goes off now.
    pub fn wake_at(&mut self, station: StationId, at: Option<Time>) {
        let now = self.now;
        self.agenda.wake_at(station, at.map(|at| at.max(now)));
    }

    /// Goes on to the next event of a station and returns it. Without one up to `until`, that
    /// moment included, time goes on to `until`; it never goes back. What falls on one moment
    /// happens in the order in which it was caused.
    pub fn step(&mut self, until: Time) -> Option<(StationId, Event)> {
        while let Some((at, what)) = self.agenda.take(until) {
            self.now = at;
            let event = self.happen(what);
            if event.is_some() {
                return event;
            }
        }
        self.now = self.now.max(until);
        None
    }

    /// When something will happen next, if only inside the network; never, if nothing will by
    /// itself.
    pub fn next_at(&self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// How many frames are on their way, those that wait included.
    pub fn in_flight(&self) -> usize {
        let waiting: usize = self.lanes.iter().map(Lane::queued_frames).sum();
        waiting + self.agenda.in_flight()
    }
}

/// Looking.
impl Network {
    /// What became of the frames so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A fingerprint of what the stations did and experienced: of every frame sent, every frame
    /// delivered and every timer that went off, with the time, the station and the bytes. The same
    /// seed and the same calls give the same one, on every machine.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Begins to record, or goes on with it, for [`pcap`](Self::pcap). A capture of more than
    /// `limit` bytes loses its oldest frames; memory takes about 50 bytes a frame more than that.
    ///
    /// A frame is recorded as it was sent, when it was sent, whatever becomes of it. If it arrives
    /// in another form, corrupted or marked, that is recorded too, when it arrives.
    pub fn start_recording(&mut self, limit: usize) {
        self.recording.start(limit);
    }

    /// Ends the recording. What was recorded is kept.
    pub fn stop_recording(&mut self) {
        self.recording.stop();
    }

    /// What was recorded, as the contents of a capture file, with virtual time for the time since
    /// 1970.
    pub fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        self.recording.write(&mut file).expect("writing to memory does not fail");
        file
    }

    /// Writes what was recorded to a capture file.
    pub fn write_pcap(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.recording.write(BufWriter::new(File::create(path)?))
    }
}
