//! The connection manager: how two ends meet, and part.
//!
//! A pure state machine, as the [NIC](crate::nic) is: management datagrams and time go in;
//! datagrams, a next time-out and events come out. It does no input or output, reads no clock, and
//! has no randomness but a [`Seed`].
//!
//! It does not touch queue pairs. Whoever drives it does, when an [`Event`] says so, and events and
//! calls carry the numbers that this takes. One thing is not among them: how long a peer waits when
//! no receive is posted (the RNR timer), which the messages don't carry and each side chooses.
//! [`connect`](crate::connect) makes of the numbers what the NIC is told.
//!
//! | event | what the driver does with the queue pair |
//! |---|---|
//! | [`Asked`](Event::Asked) | makes it ready to receive, then [accepts](ConnectionManager::accept) |
//! | [`Replied`](Event::Replied) | makes it ready to send, then says [ready](ConnectionManager::ready) |
//! | [`Established`](Event::Established) | makes it ready to send |
//! | [`Failed`](Event::Failed), [`Ended`](Event::Ended) | flushes it |
//! | [`Released`](Event::Released) | uses it again, or takes it down |
//!
//! # States and messages
//!
//! | state | waits for | what ends it | the peer repeats itself |
//! |---|---|---|---|
//! | `RequestSent` | REP | REP; REJ; given up after so many REQs | |
//! | `RequestReceived` | the program | REP or REJ is sent; the peer has given up | MRA |
//! | `ReplySent` | RTU, or data | RTU, data; REJ, DREQ; given up after so many REPs | REP |
//! | `ReplyReceived` | the program | RTU or REJ is sent; the peer has given up | MRA |
//! | `Established` | | DREQ is sent or received; REJ | RTU |
//! | `EndSent` | DREP | DREP; DREQ, which crossed; given up after so many DREQs | |
//! | `TimeWait` | time | time | REJ or DREP, whichever it was |
//!
//! Whatever ends a connection, it enters `TimeWait`. Until that is over neither its name nor its
//! queue pair is used again, so that a message that was on its way for long is not taken for one of
//! another connection.
//!
//! In any state but the first, a peer that began anew ends what it had before: a REQ or REP that
//! has the connection's name, or its queue pair, for another one is refused as stale, and the old
//! connection is reported as gone. The peer's next try succeeds once the time-wait is over, or at
//! once if it had not been accepted before.
//!
//! An MRA lengthens a wait once for each message that it answers, and no wait is longer than the
//! [configuration](Config::waits) allows, so that each of them ends.
//!
//! # What it promises
//!
//! A connection that is asked for has exactly one outcome: it stands, or it [failed](Event::Failed)
//! and the event says why. One that stands is ended once, and each is [released](Event::Released)
//! once, in the end. Whatever the network does, nothing stays behind. If two ends differ about how
//! it came out, for the last message of an exchange may always be lost, one of them learns from the
//! other's next message, or by a time-out.
//!
//! Nothing that arrives can make it panic, or hold more than was configured:
//!
//! | what | at most | beyond that |
//! |---|---|---|
//! | connections made, standing, ending | [`connections`](Config::connections) | REJ: no resources |
//! | the same and those in time-wait | [`time_waits`](Config::time_waits) more | REJ: no resources |
//! | undecided requests of a service | its backlog | dropped, to be repeated |
//! | services, here and of others | [`services`](Config::services) each | an error |
//! | datagrams to be sent | [`outgoing`](Config::outgoing) | lost, to be repeated |
//! | events | four for each place | |
//!
//! # Several processes
//!
//! Each process's manager sees every datagram that comes to the interface's queue pair 1. Names of
//! connections carry the process's tag, as the numbers of its queue pairs do, and a message about
//! another's connection is ignored. One manager is the interface's owner and answers for what is
//! nobody's: see [`listen`](ConnectionManager::listen),
//! [`set_owner`](ConnectionManager::set_owner), [`others_listen`](ConnectionManager::others_listen)
//! and [`set_vacant`](ConnectionManager::set_vacant). Who that is, and what it is told, is the
//! driver's to agree upon with the other processes.
//!
//! # How it is cut
//!
//! | file | idea |
//! |---|---|
//! | `config`, `counters`, `event`, `error` | what a driver says and is told |
//! | `terms`, `extensions` | what two ends agree upon |
//! | `ids`, `table`, `connection` | names; where connections are found; their states |
//! | `listener` | who listens to what |
//! | `active`, `passive` | making a connection, asking and asked |
//! | `refusal` | refusing, and asking for patience |
//! | `ending`, `waiting` | ending, and everything that time does |
//! | `common` | what connections share |
//!
//! # Example
//!
//! ```
//! use doorbell_core::cm::{Config, ConnectionManager, Event, Reply, Request};
//! use doorbell_core::nic::Seed;
//! use doorbell_core::wire::{CaGuid, Gid, Psn, Qpn, ServiceId};
//!
//! // The way to a peer is whatever the driver sends by; here, its number.
//! let new = |n| ConnectionManager::<u8>::new(Config::new(CaGuid(n)), Seed::from_number(n));
//! let mut managers = [new(0)?, new(1)?];
//! let service = ServiceId(7);
//! managers[1].listen(service, 1)?;
//! let request = Request::new(service, Qpn::new(0x15), Psn::new(3), Gid::default(), Gid::default());
//! let asked = managers[0].connect(1, &request, b"hello")?;
//!
//! // A network that carries everything at once.
//! fn carry(managers: &mut [ConnectionManager<u8>; 2]) {
//!     for from in [0, 1, 0, 1] {
//!         while let Some(datagram) = managers[from].transmit() {
//!             managers[usize::from(datagram.way)].receive(&(from as u8), &datagram.bytes);
//!         }
//!     }
//! }
//! carry(&mut managers);
//! let Some(Event::Asked { id, request, private, .. }) = managers[1].event() else { panic!() };
//! assert_eq!(request.qpn, Qpn::new(0x15));
//! assert!(private.starts_with(b"hello"));
//! managers[1].accept(id, &Reply::new(Qpn::new(0x16), Psn::new(4)), b"welcome")?;
//! carry(&mut managers);
//! let Some(Event::Replied { id, reply, .. }) = managers[0].event() else { panic!() };
//! assert_eq!((id, reply.qpn), (asked, Qpn::new(0x16)));
//! managers[0].ready(id, b"")?;
//! carry(&mut managers);
//! assert!(matches!(managers[1].event(), Some(Event::Established { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod active;
mod common;
mod config;
mod connection;
mod counters;
mod ending;
mod error;
mod event;
mod extensions;
mod ids;
mod listener;
mod passive;
mod refusal;
mod table;
mod terms;
mod waiting;

pub use common::Datagram;
pub use config::{Config, ConfigError};
pub use connection::State;
pub use counters::Counters;
pub use error::{ConnectionError, ListenError};
pub use event::{Event, Why};
pub use extensions::Extensions;
pub use ids::ConnectionId;
pub use terms::{Reply, Request};

use std::collections::VecDeque;
use std::hash::Hash;

use crate::nic::Seed;
use crate::nic::random::Random;
use crate::nic::timers::Timers;
use crate::time::Time;
use crate::wire::CommId;
use crate::wire::cm::{Mad, Message};

use common::Common;
use connection::Connection;
use listener::Services;
use table::Table;

/// A connection manager. See the [module](self).
///
/// `W` is the way to a peer: whatever the driver needs to send it a datagram. The way that a
/// connection is asked for by must equal the one that the peer's answers are received by.
pub struct ConnectionManager<W> {
    table: Table<W>,
    services: Services,
    common: Common<W>,
    /// Places whose timers went off, while they are seen to.
    fired: Vec<u32>,
}

/// What a manager holds at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Connections that are being made, stand, or are being ended.
    pub live: usize,
    /// Places that are taken: theirs, those of connections in time-wait, and those of connections
    /// whose last event was not taken.
    pub places: usize,
    /// Names of peers and queue pairs by which connections are found, at most three for each.
    pub names: usize,
    /// Services that are listened to.
    pub services: usize,
    /// Events that wait to be taken.
    pub events: usize,
    /// Datagrams that wait to be sent.
    pub outgoing: usize,
}

/// Whose connection a message is about.
enum Whose {
    /// The connection here.
    Found(u32),
    /// Nobody's, and that is for us to say.
    Nobodys,
    /// Another process's, or its owner's to answer for.
    Others,
}

/// Progress.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// A manager of no connections.
    ///
    /// # Errors
    /// When the configuration can't be.
    pub fn new(config: Config, seed: Seed) -> Result<Self, ConfigError> {
        let mut random = Random::new(seed);
        let table = Table::new(&config, random.u32(), random.u64())?;
        let services = Services::new(config.owner);
        let timers = Timers::new(table.capacity());
        let fired = Vec::with_capacity(table.capacity());
        let (events, outgoing) = (VecDeque::new(), VecDeque::new());
        let (now, counters) = (Time::ZERO, Counters::default());
        let common = Common { config, now, random, timers, events, outgoing, counters };
        Ok(Self { table, services, common, fired })
    }

    /// Tells the time, and does what it has come for. What is sent and received waits from the last
    /// time that was told.
    pub fn advance(&mut self, now: Time) {
        self.common.now = self.common.now.max(now);
        let mut fired = std::mem::take(&mut self.fired);
        self.common.timers.expire(self.common.now, &mut fired);
        for place in fired.drain(..) {
            self.expire(place);
        }
        self.fired = fired;
    }

    /// The next moment at which to [advance](Self::advance), if nothing happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        self.common.timers.next()
    }

    /// Takes what came to queue pair 1, and the way by which to answer.
    pub fn receive(&mut self, way: &W, datagram: &[u8]) {
        let Mad { transaction, message } = match Mad::parse(datagram) {
            Ok(mad) => mad,
            Err(why) => {
                tracing::trace!(%why, "malformed");
                return self.common.counters.malformed += 1;
            }
        };
        self.common.counters.received += 1;
        match message {
            Message::Req(req) => self.req(way, transaction, &req),
            Message::Mra(mra) => self.mra(way, &mra),
            Message::Rej(rej) => self.rej(way, &rej),
            Message::Rep(rep) => self.rep(way, transaction, &rep),
            Message::Rtu(rtu) => self.rtu(way, &rtu),
            Message::Dreq(dreq) => self.dreq(way, transaction, &dreq),
            Message::Drep(drep) => self.drep(way, &drep),
            // Services of datagrams are not served.
            Message::SidrReq(_) | Message::SidrRep(_) => self.common.counters.stray += 1,
        }
    }

    /// The next datagram to send, if there is one.
    pub fn transmit(&mut self) -> Option<Datagram<W>> {
        let datagram = self.common.outgoing.pop_front()?;
        self.common.counters.sent += 1;
        Some(datagram)
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Option<Event<W>> {
        let event = self.common.events.pop_front()?;
        if let Event::Released { id, .. } = event {
            self.table.leave(id);
        }
        Some(event)
    }

    /// The state of a connection, unless it is released.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.table.look(id.comm_id()).map(|connection| connection.state)
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.common.counters
    }

    /// What is held at this moment.
    pub fn usage(&self) -> Usage {
        Usage {
            live: self.table.live,
            places: self.table.taken(),
            names: self.table.names(),
            services: self.services.len(),
            events: self.common.events.len(),
            outgoing: self.common.outgoing.len(),
        }
    }

    /// Whose connection a message is about that names ours, and the peer's name for it.
    fn whose(&mut self, way: &W, ours: CommId, theirs: CommId) -> Whose {
        let ids = self.table.ids;
        if !ids.is_ours(ours) && !self.services.answers_for(ids.tag(ours)) {
            self.common.counters.of_others += 1;
            return Whose::Others;
        }
        let is_meant = |found: &&mut Connection<W>| {
            found.way == *way && found.peer.is_none_or(|peer| peer.id == theirs)
        };
        match self.table.find(ours).filter(is_meant) {
            Some(found) => Whose::Found(found.place),
            None => {
                self.common.counters.unknown += 1;
                Whose::Nobodys
            }
        }
    }

    /// The same for messages that nobody answers who doesn't know the connection.
    fn known(&mut self, way: &W, ours: CommId, theirs: CommId) -> Option<u32> {
        match self.whose(way, ours, theirs) {
            Whose::Found(place) => Some(place),
            Whose::Nobodys | Whose::Others => None,
        }
    }
}
