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
//! | [`Claimed`](Event::Claimed) | asks its peer whether it is there; ends the connection if it is not |
//! | [`Newcomer`](Event::Newcomer) | asks the peers at that address that it can have replaced the same |
//! | [`Released`](Event::Released) | uses it again, or takes it down |
//!
//! # States and messages
//!
//! | state | waits for | what ends it | the peer repeats itself |
//! |---|---|---|---|
//! | `RequestSent` | REP | REP; REJ; a closed port; given up after so many REQs | |
//! | `RequestReceived` | the program | REP or REJ is sent; the peer has given up; crowded out | MRA |
//! | `ReplySent` | RTU, or data | RTU, data; REJ, DREQ; given up in time; crowded out | REP |
//! | `ReplyReceived` | the program | RTU or REJ is sent; the peer has given up | MRA |
//! | `Established` | | DREQ is sent or received; REJ | RTU |
//! | `EndSent` | DREP | DREP; DREQ, which crossed; given up in time | |
//! | `TimeWait` | time | time | REJ or DREP, whichever it was |
//!
//! Whatever ends a connection, it enters `TimeWait`. Until that is over neither its name nor its
//! queue pair is used again, so that a message that was on its way for long is not taken for one of
//! another connection.
//!
//! Each state but `Established` passes by time. A request is repeated as often as [it
//! says](Request::within). What was accepted, and what is being ended, is given up when the peer
//! has not confirmed it for [`unconfirmed`](Config::unconfirmed), whatever its request says. A
//! program, here or at the peer, has at most [`undecided`](Config::undecided) to decide: an MRA
//! lengthens a wait once for each message that it answers, and not beyond that.
//!
//! # Peers that begin anew, and strangers
//!
//! A peer that begins anew has another [GUID](Config::guid), so that nothing it says is taken for
//! what it had said before. That connections of the GUID before it are gone is not believed on its
//! word. The driver [is told](Event::Newcomer) that another peer speaks where some of its
//! connections lead, with the process tag that those have in their queue pair numbers. It asks
//! their peers, and ends those that are not answered. Only a message that is otherwise acceptable
//! tells of such a newcomer.
//!
//! Some peers keep their GUID when they begin anew, as the Linux kernel does. A REQ or a REP may
//! then have the name or the queue pair of a connection that stands for another one. Such a
//! [claim](Event::Claimed) ends nothing either: it is dropped, to be repeated, until the driver has
//! asked the connection's peer. If that has answered, the claim is refused as stale.
//!
//! Nothing else that a message says ends a connection without what only its two ends know, and
//! whoever sees their packets. From off the path, a stranger who forges the peer's address must
//! guess
//!
//! | to | it must guess | random bits |
//! |---|---|---|
//! | end a connection that stands by DREQ | both names, our queue pair's number | 26, 26, 13 |
//! | end it by REJ | both names, the transaction | 26, 26, 64 |
//! | refuse or answer a request of ours, or have it fail by a closed port | our name, the transaction | 26, 64 |
//! | withdraw a request of the peer's before it is confirmed | its GUID, its name, the transaction | 64, 26, 64 |
//! | have a connection's peer asked whether it is there | its GUID, and its name or its queue pair's number | 64, 26 or 13 |
//!
//! with 6 bits of tag, a NIC that may have 65,536 queue pairs, and a peer of this kind; how random a
//! kernel's numbers are is its own affair. Who has connections of its own learns the GUID of either
//! side, and the numbers of those connections, which [tell nothing](ConnectionId) of any other. Who
//! sees the packets of a connection needs to guess nothing, and can end it: against that only
//! encryption helps.
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
//! | connections that peers ask for and that do not stand | [`half_open`](Config::half_open) | the oldest from the way that has the most goes, or the new one is dropped, to be repeated |
//! | the same of a service, undecided | its backlog | as before |
//! | those that were refused or given up, in time-wait | `half_open` more | the oldest is released early |
//! | services, here and of others | [`services`](Config::services) each | an error |
//! | datagrams to be sent | [`outgoing`](Config::outgoing) | lost, to be repeated |
//! | events | six for each place | |
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
//! | `half_open` | how many peers may ask at a time, and who has to go |
//! | `standing` | whose connections stand, and who claims their places |
//! | `active`, `passive` | making a connection, asking and asked |
//! | `refusal` | refusing, and asking for patience |
//! | `ending`, `waiting` | ending, and everything that time does |
//! | `common` | what connections share |
//!
//! # Example
//!
//! ```
//! use doorbell_core::cm::{Config, ConnectionManager, Event, Reply, Request};
//! use doorbell_core::common::Seed;
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
mod half_open;
mod ids;
mod listener;
mod passive;
mod refusal;
mod standing;
mod table;
mod terms;
mod waiting;

pub use common::Datagram;
pub use config::{Config, ConfigError};
pub use connection::State;
pub use counters::Counters;
pub use error::{ConnectionError, ListenError};
pub use event::{Event, Silent, Why};
pub use extensions::Extensions;
pub use ids::ConnectionId;
pub use terms::{Reply, Request};

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;

use crate::common::random::{Random, Seed};
use crate::common::timers::Timers;
use crate::time::Time;
use crate::wire::cm::{Mad, Message};
use crate::wire::{CaGuid, CommId};

use common::Common;
use connection::Connection;
use half_open::HalfOpen;
use listener::Services;
use standing::Standing;
use table::Table;

/// A connection manager. See the [module](self).
///
/// `W` is the way to a peer: whatever the driver needs to send it a datagram. The way that a
/// connection is asked for by must equal the one that the peer's answers are received by.
pub struct ConnectionManager<W> {
    table: Table<W>,
    services: Services,
    half_open: HalfOpen<W>,
    standing: Standing<W>,
    /// Places of connections that peers asked for, that never stood, and that rest.
    resting: VecDeque<u32>,
    common: Common<W>,
    /// Places whose timers went off, while they are seen to.
    fired: Vec<u32>,
}

impl<W: Clone + Eq + Hash> fmt::Debug for ConnectionManager<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionManager")
            .field("guid", &self.common.config.guid)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
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
    /// Connections that peers have asked for and that do not stand yet.
    pub half_open: usize,
    /// Ways by which connections stand.
    pub ways: usize,
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
        let table = Table::new(&config, random.u64())?;
        let half_open = HalfOpen::new(random.u64());
        let standing = Standing::new(random.u64(), config.tag_bits);
        let resting = VecDeque::new();
        let services = Services::new(config.owner);
        let (timers, fired) = (Timers::new(0), Vec::new());
        let (events, outgoing) = (VecDeque::new(), VecDeque::new());
        let (now, counters) = (Time::ZERO, Counters::default());
        let common = Common { config, now, random, timers, events, outgoing, counters };
        Ok(Self { table, services, half_open, standing, resting, common, fired })
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
            Message::Rej(rej) => self.rej(way, transaction, &rej),
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
        match &event {
            Event::Released { id, .. } => self.table.leave(*id),
            Event::Claimed { id } => {
                if let Some(connection) = self.table.find(id.comm_id()) {
                    connection.untaken_claim = false;
                }
            }
            Event::Newcomer { way, qpn } => self.standing.taken(way, *qpn),
            _ => {}
        }
        Some(event)
    }

    /// The GUID of a connection's peer, once a message has told it, and until it is released: what
    /// tells one run of the peer's program from the next.
    pub fn peer(&self, id: ConnectionId) -> Option<CaGuid> {
        self.table.look(id.comm_id())?.peer.map(|peer| peer.guid)
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
            half_open: self.half_open.len(),
            ways: self.standing.len(),
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
