//! Errors of calls to a connection manager.

use thiserror::Error;

use crate::wire::cm::TooLong;
use crate::wire::{Qpn, ServiceId};

use super::extensions::Extensions;
use super::ids::ConnectionId;
use super::state::ConnectionState;

/// Why a call did nothing to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ConnectionError {
    /// The manager has no connection with this ID.
    #[error("{0} is not there: it was released, or is another manager's")]
    NoSuchConnection(ConnectionId),
    /// The connection is in a state in which the call has no meaning.
    #[error("{id} can't be {tried} in state {found:?}: that is for {wanted}")]
    State {
        /// The connection that the call named.
        id: ConnectionId,
        /// The action that the call asked for, as a participle.
        tried: &'static str,
        /// The state that the connection is in.
        found: ConnectionState,
        /// The states in which the call has a meaning.
        wanted: &'static str,
    },
    /// The queue pair belongs to another connection.
    #[error("queue pair {qpn} is taken by {by}: wait until that is released, or use another one")]
    QueuePairTaken {
        /// The queue pair that the call named.
        qpn: Qpn,
        /// The connection that the queue pair belongs to.
        by: ConnectionId,
    },
    /// The manager has as many connections as [`connections`](super::Config::connections) allows.
    #[error("all {0} connections of this manager are taken: end some, or configure more")]
    Full(usize),
    /// Connections in time-wait, or whose last event was not taken, fill the table.
    #[error(
        "all {0} places for connections are taken, many by what is over: take the manager's \
         events, let the time-waits pass, or configure more room for them"
    )]
    TimeWaits(usize),
    /// A request for a port of `rdma_cm`'s lacks IP addressing, or another request has it.
    #[error(
        "service {service} {} a port of `rdma_cm`'s, and the request has {} IP addressing: \
         see Request::to_port",
        if *.addressing { "isn't" } else { "is" },
        if *.addressing { "an" } else { "no" }
    )]
    Addressing {
        /// The service that is requested.
        service: ServiceId,
        /// Whether the request has IP addressing.
        addressing: bool,
    },
    /// The private data of a request or a reply is too long.
    #[error(
        "{given} bytes of private data do not go into a {message}: it takes {limit}, of which {beside} \
         leave room for agreeing on extensions"
    )]
    Private {
        /// The kind of message: a request, a request for a port, or a reply.
        message: &'static str,
        /// The length of the private data in bytes.
        given: usize,
        /// The most bytes that the message takes.
        limit: usize,
        /// The most bytes beside which the two sides can agree on extensions of the protocol.
        beside: usize,
    },
    /// The private data of another message is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl ConnectionError {
    /// Returns the error for private data that is too long for a request or a reply.
    pub(super) const fn private_data(message: &'static str, why: TooLong) -> Self {
        let TooLong { given, limit } = why;
        Self::Private { message, given, limit, beside: limit - Extensions::OFFER_LEN }
    }
}

/// Why a call changed nothing about the services and processes that a manager knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ListenError {
    /// The service has a listener already, in this manager or another process.
    #[error("service {0} is listened to already: stop that first, or choose another")]
    Taken(ServiceId),
    /// A listener was to have a backlog of zero requests.
    #[error("service {0} with a backlog of 0 would never be asked: give it at least 1")]
    NoBacklog(ServiceId),
    /// The manager knows as many services as [`services`](super::Config::services) allows.
    #[error(
        "service {service} is beyond the {limit} that one connection manager listens to: stop some"
    )]
    Full {
        /// The service that the call named.
        service: ServiceId,
        /// The most services that there may be.
        limit: usize,
    },
    /// The manager does not listen to the service.
    #[error("service {0} is not listened to by this manager")]
    NotListening(ServiceId),
    /// The tag can't be another process's.
    #[error("tag {tag} is not another process's: tags have {tag_bits} bits, and {own} is our own")]
    Tag {
        /// The tag that the call named.
        tag: u32,
        /// The number of bits that tags have.
        tag_bits: u32,
        /// The tag of this manager's own process.
        own: u32,
    },
}
