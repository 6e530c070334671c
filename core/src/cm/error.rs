//! Why a connection manager did not do what it was told.

use thiserror::Error;

use crate::wire::cm::TooLong;
use crate::wire::{Qpn, ServiceId};

use super::connection::State;
use super::ids::ConnectionId;

/// Why nothing was done about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ConnectionError {
    /// There is no such connection.
    #[error("{0} is not there: it was released, or is another manager's")]
    NoSuchConnection(ConnectionId),
    /// The connection is in another state.
    #[error("{id} can't be {tried} in state {found:?}: that is for {wanted}")]
    State {
        /// The connection.
        id: ConnectionId,
        /// What was to be done.
        tried: &'static str,
        /// The state it is in.
        found: State,
        /// Where it would have a meaning.
        wanted: &'static str,
    },
    /// The queue pair is another connection's.
    #[error("queue pair {qpn} is taken by {by}: wait until that is released, or use another one")]
    QueuePairTaken {
        /// The queue pair.
        qpn: Qpn,
        /// Whose it is.
        by: ConnectionId,
    },
    /// As many connections as may be are being made, stand, or are being ended.
    #[error("all {0} connections of this manager are taken: end some, or configure more")]
    Full(usize),
    /// What is over takes the room of what shall be.
    #[error(
        "all {0} places for connections are taken, many by what is over: take the manager's \
         events, let the time-waits pass, or configure more room for them"
    )]
    TimeWaits(usize),
    /// A port is asked for without IP addressing, or something else with it.
    #[error(
        "service {service} {} a port of `rdma_cm`'s, and the request has {} IP addressing: \
         see Request::to_port",
        if *.addressing { "isn't" } else { "is" },
        if *.addressing { "an" } else { "no" }
    )]
    Addressing {
        /// The service.
        service: ServiceId,
        /// Whether there is IP addressing.
        addressing: bool,
    },
    /// The private data of a request or a reply is too long.
    #[error(
        "{given} bytes of private data do not go into a {message}: it takes {limit}, of which {beside} \
         leave room for agreeing on extensions"
    )]
    Private {
        /// The message: a request, a request for a port, or a reply.
        message: &'static str,
        /// How many bytes there are.
        given: usize,
        /// The most that the message takes.
        limit: usize,
        /// The most beside which the two sides can agree on extensions of the protocol.
        beside: usize,
    },
    /// The private data of another message is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// Why a service or a process is not noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ListenError {
    /// Somebody listens already.
    #[error("service {0} is listened to already: stop that first, or choose another")]
    Taken(ServiceId),
    /// Nothing can be asked of a listener without a backlog.
    #[error("service {0} with a backlog of 0 would never be asked: give it at least 1")]
    NoBacklog(ServiceId),
    /// The table is full.
    #[error(
        "service {service} is beyond the {limit} that one connection manager listens to: stop some"
    )]
    Full {
        /// The service.
        service: ServiceId,
        /// How many there may be.
        limit: usize,
    },
    /// Nobody listens.
    #[error("service {0} is not listened to by this manager")]
    NotListening(ServiceId),
    /// A tag is none.
    #[error("tag {tag} is not another process's: tags have {tag_bits} bits, and {own} is our own")]
    Tag {
        /// The tag.
        tag: u32,
        /// How many bits tags have.
        tag_bits: u32,
        /// The manager's own.
        own: u32,
    },
}
