//! Managers at the stations of a network that carries at once what it is not told to lose.

use std::time::Duration;

use doorbell_core::cm::{
    Config, ConnectionId, ConnectionManager, Event, Reply, Request, Silent, Usage, Why,
};
use doorbell_core::nic::Seed;
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{CmRetries, CmTimeout, Mad, Message};
use doorbell_core::wire::*;

pub type Manager = ConnectionManager<usize>;

pub const SERVICE: ServiceId = ServiceId(0x1234);
/// What peers allow each other for an answer: 4.2 ms.
pub const ANSWER: CmTimeout = CmTimeout::new(10);
pub const RETRIES: u8 = 3;

/// A station's configuration: a GUID of its own, and short waits.
pub fn config(station: usize) -> Config {
    let guid = CaGuid(100 + station as u64);
    let (time_wait, verification) = (millis(30), millis(20));
    Config { time_wait, verification, ..Config::new(guid) }
}

/// A request from a station's queue pair, on terms that tell it from others.
pub fn request(qpn: u32) -> Request {
    let (from, to) = (Gid([1; 16]), Gid([2; 16]));
    let terms = Request::new(SERVICE, Qpn::new(qpn), Psn::new(7 * qpn), from, to);
    let retries = CmRetries::new(RETRIES);
    Request { remote_timeout: ANSWER, local_timeout: ANSWER, retries, ..terms }
}

pub fn reply(qpn: u32) -> Reply {
    Reply::new(Qpn::new(qpn), Psn::new(9 * qpn))
}

/// What kind of message a datagram carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Req,
    Mra,
    Rej,
    Rep,
    Rtu,
    Dreq,
    Drep,
}

pub fn kind(datagram: &[u8]) -> Kind {
    match Mad::parse(datagram).expect("what is sent parses").message {
        Message::Req(_) => Kind::Req,
        Message::Mra(_) => Kind::Mra,
        Message::Rej(_) => Kind::Rej,
        Message::Rep(_) => Kind::Rep,
        Message::Rtu(_) => Kind::Rtu,
        Message::Dreq(_) => Kind::Dreq,
        Message::Drep(_) => Kind::Drep,
        other => panic!("a manager doesn't send {other:?}"),
    }
}

/// Managers, each at a station of its own, by whose number the others reach it.
pub struct World {
    pub managers: Vec<Manager>,
    pub now: Time,
    /// Everything that was sent: from where, and what.
    pub sent: Vec<(usize, Kind)>,
}

impl World {
    pub fn new(stations: usize) -> Self {
        Self::with((0..stations).map(config).collect())
    }

    pub fn with(configs: Vec<Config>) -> Self {
        let made = configs.into_iter().zip(1..);
        let managers = made.map(|(config, seed)| manager(config, seed)).collect();
        Self { managers, now: Time::ZERO, sent: Vec::new() }
    }

    /// Two stations, of which the second listens.
    pub fn pair() -> Self {
        let mut world = Self::new(2);
        world.managers[1].listen(SERVICE, 4).unwrap();
        world
    }

    /// Carries what is sent, and what is sent because of it, but for what is to be lost.
    pub fn carry_but(&mut self, mut lost: impl FnMut(usize, Kind) -> bool) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for from in 0..self.managers.len() {
                while let Some(datagram) = self.managers[from].transmit() {
                    quiet = false;
                    let kind = kind(&datagram.bytes);
                    self.sent.push((from, kind));
                    if !lost(from, kind) {
                        self.managers[datagram.way].receive(&from, &datagram.bytes);
                    }
                }
            }
        }
    }

    pub fn carry(&mut self) {
        self.carry_but(|_, _| false);
    }

    /// Lets time pass, and carries what is sent meanwhile but for what is to be lost.
    pub fn pass_but(&mut self, delay: Duration, mut lost: impl FnMut(usize, Kind) -> bool) {
        let end = self.now + delay;
        self.carry_but(&mut lost);
        loop {
            let next = self.managers.iter().filter_map(Manager::next_timeout).min();
            self.now = next.unwrap_or(end).min(end).max(self.now);
            for manager in &mut self.managers {
                manager.advance(self.now);
            }
            self.carry_but(&mut lost);
            if self.now == end {
                return;
            }
        }
    }

    pub fn pass(&mut self, delay: Duration) {
        self.pass_but(delay, |_, _| false);
    }

    pub fn event(&mut self, station: usize) -> Event<usize> {
        self.managers[station].event().expect("an event")
    }

    pub fn no_event(&mut self) {
        for manager in &mut self.managers {
            assert_eq!(manager.event(), None);
        }
    }

    /// The connection that a station is asked for.
    pub fn asked(&mut self, station: usize) -> ConnectionId {
        match self.event(station) {
            Event::Asked { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn replied(&mut self, station: usize) -> ConnectionId {
        match self.event(station) {
            Event::Replied { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn established(&mut self, station: usize) -> ConnectionId {
        match self.event(station) {
            Event::Established { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn failed(&mut self, station: usize) -> (ConnectionId, Why) {
        match self.event(station) {
            Event::Failed { id, why } => (id, why),
            other => panic!("{other:?}"),
        }
    }

    /// The connection at a station that somebody claims.
    pub fn claimed(&mut self, station: usize) -> ConnectionId {
        match self.event(station) {
            Event::Claimed { id } => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn ended(&mut self, station: usize) -> (ConnectionId, Why) {
        match self.event(station) {
            Event::Ended { id, why } => (id, why),
            other => panic!("{other:?}"),
        }
    }

    pub fn released(&mut self, station: usize) -> (ConnectionId, Option<Qpn>) {
        match self.event(station) {
            Event::Released { id, qpn } => (id, qpn),
            other => panic!("{other:?}"),
        }
    }

    /// Connects queue pairs of the two stations, and gives each side's name for the connection.
    pub fn connect(&mut self, qpns: (u32, u32)) -> (ConnectionId, ConnectionId) {
        let asking = self.managers[0].connect(1, &request(qpns.0), b"").unwrap();
        self.carry();
        let asked = self.asked(1);
        self.managers[1].accept(asked, &reply(qpns.1), b"").unwrap();
        self.carry();
        assert_eq!(self.replied(0), asking);
        self.managers[0].ready(asking, b"").unwrap();
        self.carry();
        assert_eq!(self.established(1), asked);
        (asking, asked)
    }

    /// Nothing of any connection is left, once the events are taken.
    pub fn nothing_left(&self) {
        for manager in &self.managers {
            let usage = Usage { services: 0, ..manager.usage() };
            assert_eq!(usage, Usage::default());
            assert_eq!(manager.next_timeout(), None);
        }
    }

    /// The kinds of message that were sent so far, and forgets them.
    pub fn said(&mut self) -> Vec<(usize, Kind)> {
        std::mem::take(&mut self.sent)
    }
}

/// Whether that is how a connection ends for which somebody did not answer.
pub fn timed_out(why: &Why, who: Silent) -> bool {
    matches!(why, Why::TimedOut { silence, .. } if *silence == who)
}

pub fn manager(config: Config, seed: u64) -> Manager {
    Manager::new(config, Seed::from_number(seed)).expect("a configuration that can be")
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Longer than any wait of a connection with all its repetitions, and the time-wait behind it.
pub const LONG: Duration = Duration::from_secs(100);

/// Splitmix64: the same numbers on every machine.
pub struct Luck(pub u64);

impl Luck {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    /// Whether something happens that happens so often in a thousand times.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}
