//! The connection manager: how two sides establish a connection, and how they release it.
//!
//! The connection manager is a pure state machine, as the [NIC](crate::nic) is. Management datagrams
//! and the time go in; datagrams, a next time-out and events come out. It does no input or output,
//! reads no clock, and has no randomness but a [`Seed`](crate::common::Seed).
//!
//! It does not touch queue pairs. Its driver does, when an [`Event`] says so, and events and calls
//! carry the numbers that the driver needs for that. One number is not among them: how long a peer
//! waits when no receive is posted (the RNR timer), which the messages don't carry and each side
//! chooses. [`connect`](crate::connect) turns the numbers into settings of the NIC.
//!
//! | event | what the driver does with the queue pair |
//! |---|---|
//! | [`Asked`](Event::Asked) | makes it ready to receive, then [accepts](ConnectionManager::accept) |
//! | [`Replied`](Event::Replied) | makes it ready to send, then calls [`ready`](ConnectionManager::ready) |
//! | [`Established`](Event::Established) | makes it ready to send |
//! | [`Failed`](Event::Failed), [`Ended`](Event::Ended) | flushes it |
//! | [`Claimed`](Event::Claimed) | asks its peer for a sign of life, and ends the connection if none comes |
//! | [`Newcomer`](Event::Newcomer) | asks the peers at that address which the newcomer can have replaced for a sign of life |
//! | [`Released`](Event::Released) | uses it again, or takes it down |
//!
//! # States and messages
//!
//! | state | waits for | what ends the state | the answer to a repeated message |
//! |---|---|---|---|
//! | `ReqSent` | REP | REP; REJ; a closed port; too many repetitions of the REQ | |
//! | `ReqReceived` | the program | REP or REJ is sent; the peer has given up; the connection is recycled | MRA |
//! | `RepSent` | RTU, or data | RTU, data; REJ, DREQ; a time-out; the connection is recycled | REP |
//! | `RepReceived` | the program | RTU or REJ is sent; the peer has given up | MRA |
//! | `Established` | | DREQ is sent or received; REJ | RTU |
//! | `DreqSent` | DREP | DREP; a DREQ from the peer; a time-out | |
//! | `TimeWait` | time | time | the last REJ or DREP |
//!
//! Whatever ends a connection, it enters `TimeWait`. Until that is over, neither its communication
//! ID nor its queue pair is used again, so that a message that was long on its way is not taken for
//! a message of another connection.
//!
//! Each state but `Established` is limited in time. A REQ is repeated as often as [it
//! says](Request::within). A connection that was accepted, or is being ended, is given up when the
//! peer has not confirmed that for [`unconfirmed`](Config::unconfirmed), whatever its REQ says. A
//! program, here or at the peer, has at most [`undecided`](Config::undecided) to decide: an MRA
//! lengthens a wait once for each message that it answers, and not beyond that time.
//!
//! # Peers that begin anew, and strangers
//!
//! A peer that begins anew has another [GUID](Config::guid), so nothing that it sends is taken for
//! something that it sent before. The manager does not believe its word that the connections of the
//! earlier GUID are gone. It [tells the driver](Event::Newcomer) that a new peer has sent a message
//! from an address to which connections lead, with the process tag that their peers have in their
//! queue pair numbers. The driver asks these peers for a sign of life, and ends the connections
//! whose peers don't answer. Only a message that is otherwise acceptable causes this.
//!
//! Some peers keep their GUID when they begin anew, as the Linux kernel does. Their REQ or REP may
//! then name the communication ID or the queue pair of an established connection for another one.
//! Such a [claim](Event::Claimed) does not end the connection either. The message is dropped, and
//! its sender repeats it, until the driver has asked the connection's peer. If that peer has
//! answered, the message is rejected as stale.
//!
//! No other message ends a connection unless it contains what only the two sides know, and whoever
//! sees their packets. A stranger off the path who forges the peer's address must guess
//!
//! | to | the stranger must guess | random bits |
//! |---|---|---|
//! | end an established connection by DREQ | both communication IDs, our queue pair's number | 26, 26, 13 |
//! | end it by REJ | both communication IDs, the transaction ID | 26, 26, 64 |
//! | reject or answer our REQ, or have it fail by a closed port | our communication ID, the transaction ID | 26, 64 |
//! | withdraw a REQ of the peer's before the connection is confirmed | the peer's GUID, its communication ID, the transaction ID | 64, 26, 64 |
//! | have a connection's peer asked for a sign of life | the peer's GUID, and its communication ID or its queue pair's number | 64, 26 or 13 |
//!
//! with 6 bits of tag, a NIC that may have 65,536 queue pairs, and a peer that is a manager of this
//! kind; how random a kernel's numbers are is its own affair. Whoever has connections of its own
//! knows the GUID of either side and the numbers of those connections, which [tell
//! nothing](ConnectionId) about any other. Whoever sees the packets of a connection needs to guess
//! nothing, and can end it: only encryption helps against that.
//!
//! # Promises
//!
//! A connection that is requested has exactly one outcome: it is established, or it
//! [failed](Event::Failed) and the event says why. An established connection is ended once, and each
//! connection is [released](Event::Released) once, in the end. Whatever the network does, no
//! connection stays behind. If the two sides disagree about the outcome, since the last message of
//! an exchange may always be lost, one of them learns from the other's next message, or by a
//! time-out.
//!
//! No message can make the manager panic, or hold more than was configured:
//!
//! | what | at most | beyond that |
//! |---|---|---|
//! | connections under way, established or being ended | [`connections`](Config::connections) | REJ: no resources |
//! | these and those in TimeWait | [`time_waits`](Config::time_waits) more | REJ: no resources |
//! | half-open connections | [`half_open`](Config::half_open) | the oldest from the way that has the most is recycled, or the new REQ is dropped, to be repeated |
//! | undecided requests for a service | its backlog | as with half-open connections |
//! | half-open connections that failed, in TimeWait | `half_open` more | the oldest is released early |
//! | services, of this manager and of others | [`services`](Config::services) each | an error |
//! | datagrams to be sent | [`outgoing`](Config::outgoing) | lost, to be repeated |
//! | events | six for each place in the table | |
//!
//! # Several processes
//!
//! Each process's manager sees every datagram that comes to the interface's queue pair 1.
//! Communication IDs carry the tag of their process, as the numbers of its queue pairs do, and a
//! message about another process's connection is ignored. One manager is the interface's owner and
//! answers what concerns no process: see [`listen`](ConnectionManager::listen),
//! [`set_owner`](ConnectionManager::set_owner), [`others_listen`](ConnectionManager::others_listen)
//! and [`set_vacant`](ConnectionManager::set_vacant). The drivers of the processes agree on which
//! manager is the owner, and on what the owner is told.
//!
//! # Layers
//!
//! Each file imports, and calls, only files in rows below its own.
//!
//! | files | what they have |
//! |---|---|
//! | `dispatch` | inputs and outputs: datagrams, the time, events |
//! | `timeout` | repeating, giving up, releasing when a timer fires |
//! | `active`, `passive`, `disconnect` | establishing a connection (REQ, REP, RTU), and releasing it (DREQ, DREP) |
//! | `listen` | which services are listened to |
//! | `mra`, `recycling`, `stale` | more time (MRA); room among half-open connections; claims to identifiers in use |
//! | `reject` | REJ, sent and received |
//! | `time_wait` | the end of a connection |
//! | `manager` | the `ConnectionManager`'s data |
//! | `table`, `half_open`, `established` | connections by their identifiers; those that count against floods; peers |
//! | `connection` | one connection, and its last message, which is repeated |
//! | `context`, `response_timeouts` | the time, timers and queues that connections share; CM response time-outs |
//! | `event`, `error` | what the driver is told |
//! | `terms`, `ids` | what two sides agree upon; communication IDs |
//! | `config` | settings |
//! | `counters`, `extensions`, `keyed_hash`, `services`, `state` | counts; extensions of the protocol; listeners; the states of a connection |
//!
//! # Example
//!
//! ```
//! use doorbell_core::cm::{Config, ConnectionManager, Event, Reply, Request};
//! use doorbell_core::common::Seed;
//! use doorbell_core::wire::{CaGuid, Gid, Psn, Qpn, ServiceId};
//!
//! // The way to a peer is whatever the driver needs to send there: here, the peer's number.
//! let new = |n| ConnectionManager::<u8>::new(Config::new(CaGuid(n)), Seed::from_number(n));
//! let mut managers = [new(0)?, new(1)?];
//! let service = ServiceId(7);
//! managers[1].listen(service, 1)?;
//! let request = Request::new(service, Qpn::new(0x15), Psn::new(3), Gid::default(), Gid::default());
//! let asked = managers[0].connect(1, &request, b"hello")?;
//!
//! // A network that delivers every datagram at once.
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
mod config;
mod connection;
mod context;
mod counters;
mod disconnect;
mod dispatch;
mod error;
mod established;
mod event;
mod extensions;
mod guard;
mod half_open;
mod ids;
mod keyed_hash;
mod listen;
mod manager;
mod mra;
mod passive;
mod recycling;
mod reject;
mod response_timeouts;
mod services;
mod stale;
mod state;
mod table;
mod terms;
mod time_wait;
mod timeout;

pub use config::{Config, ConfigError};
pub use context::Datagram;
pub use counters::Counters;
pub use error::{ConnectionError, ListenError};
pub use event::{Event, Silent, Why};
pub use extensions::Extensions;
pub use guard::{Ending, Guard};
pub use ids::ConnectionId;
pub use manager::{ConnectionManager, Usage};
pub use state::ConnectionState;
pub use terms::{Reply, Request};
