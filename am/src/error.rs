//! What goes wrong, and why.

use std::io;

use doorbell_verbs::{ConnectError, Ending, ListenRefused, RegisterError, ResourceError};
use thiserror::Error;

use crate::words::MOST_WORDS;

/// Why a request was not delivered, or not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Undeliverable {
    /// The endpoint has another tag.
    #[error("the endpoint has another tag than it was mapped with")]
    WrongTag = 1,
    /// The endpoint has no such handler.
    #[error("the endpoint has no handler of this index")]
    NoHandler,
    /// The words are not the arguments of the handler.
    #[error("the handler of this index has other arguments")]
    Arguments,
    /// The handler panicked.
    #[error("the handler panicked, and has not replied")]
    Panicked,
    /// The handler has not replied in time.
    #[error("the handler has not replied within the time that it has")]
    NoReply,
    /// The handler has ended without a reply to a call.
    #[error("the handler has ended without a reply")]
    Unanswered,
    /// What the handler replied is more than the requester takes.
    #[error("the handler's reply is longer than this side takes in a message")]
    LongReply,
    /// What was to be placed in the endpoint's segment does not fit.
    #[error("the endpoint's segment has no room for it there")]
    Segment,
    /// The endpoint has gone, or the way there.
    #[error("the peer has gone")]
    PeerGone,
    /// Too many asynchronous handlers of the endpoint are under way, of peers that have gone, too.
    #[error("the endpoint has too many asynchronous handlers under way")]
    Busy,
}

impl Undeliverable {
    const ALL: [Self; 10] = [
        Self::WrongTag,
        Self::NoHandler,
        Self::Arguments,
        Self::Panicked,
        Self::NoReply,
        Self::Unanswered,
        Self::LongReply,
        Self::Segment,
        Self::PeerGone,
        Self::Busy,
    ];

    /// In a message.
    pub(crate) fn code(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.code() == code)
    }
}

/// Why a message was not sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No peer is mapped there.
    #[error("no peer is mapped at {0}: map one first")]
    NotMapped(usize),
    /// The peer has gone.
    #[error("the peer has gone: {0}")]
    Gone(Ending),
    /// A handler of requests or replies wanted to send a request, or to wait.
    #[error(
        "a handler may only reply: what sends requests, or waits, belongs into an asynchronous \
         handler, or a task of its own"
    )]
    InHandler,
    /// The payload, with what there is of words beyond sixteen, is longer than the peer takes in a message.
    #[error(
        "a payload of {len} bytes, with the words beyond {MOST_WORDS}, is more than the {most} that \
         the peer takes in a message"
    )]
    Payload {
        /// How long it is.
        len: usize,
        /// The most.
        most: usize,
    },
    /// There are more arguments than what is placed may have.
    #[error("{0} words are more than the {MOST_WORDS} that go with what is placed")]
    Words(usize),
    /// It does not fit into the peer's segment.
    #[error("{len} bytes at {offset} are beyond the {room} of the peer's segment")]
    Segment {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
        /// How many there are.
        room: u64,
    },
    /// There was no credit by the time that was given.
    #[error("no credit came back in time: the peer's handlers are slow, or stuck")]
    NoCredit,
}

/// Why a call has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CallError {
    /// It was not sent.
    #[error("{0}")]
    NotSent(#[from] SendError),
    /// It was not delivered, or not answered.
    #[error("{0}")]
    Undeliverable(#[from] Undeliverable),
    /// What was replied is not what was expected.
    #[error("the reply is of handler {found}, and not `{expected}`, or has other arguments")]
    OtherReply {
        /// The handler that it was for.
        found: u16,
        /// The one that was expected.
        expected: &'static str,
    },
}

/// Why a peer was not mapped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// It was not reached, or refused.
    #[error("mapping {name}: {why}")]
    Connect {
        /// Who.
        name: String,
        /// Why.
        #[source]
        why: ConnectError,
    },
    /// There is no room for another peer.
    #[error("mapping {name}: {why}")]
    Resources {
        /// Who.
        name: String,
        /// Why.
        #[source]
        why: ResourceError,
    },
    /// There are no receives for another peer.
    #[error("mapping {name}: {why}")]
    Receives {
        /// Who.
        name: String,
        /// Why.
        why: String,
    },
    /// Whoever answers there is no endpoint.
    #[error("mapping {0}: what answers there is no endpoint of Active Messages of this version")]
    NoEndpoint(String),
    /// A peer is mapped there already.
    #[error("a peer is mapped at {0} already: unmap it first, or take another place")]
    Taken(usize),
    /// The place is too far out.
    #[error("place {index} is beyond the {most} of the table")]
    Place {
        /// The place.
        index: usize,
        /// How many there are.
        most: usize,
    },
    /// Both have a handler of the same index that is not the same.
    #[error(
        "the endpoints' handlers differ: at {index} of the {table} the peer has `{there}`, and this \
         side another, or one with other arguments: both must declare the same"
    )]
    Handlers {
        /// Of requests, or of replies.
        table: &'static str,
        /// Where.
        index: u16,
        /// What is there on the peer's.
        there: String,
    },
    /// The peer has gone before its handlers were compared.
    #[error("mapping {name}: {why}")]
    Lost {
        /// Who.
        name: String,
        /// Why.
        #[source]
        why: CallError,
    },
}

/// Why a bundle or an endpoint can't be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The NIC has no room.
    #[error("{0}")]
    Resources(#[from] ResourceError),
    /// The segment was not registered.
    #[error("registering the segment: {0}")]
    Segment(#[from] RegisterError),
    /// The name is taken.
    #[error("{0}")]
    Listen(#[from] ListenRefused),
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
    /// There is no runtime here, and none could be made.
    #[error("starting a thread for what runs beside: {0}")]
    Runtime(#[from] io::Error),
    /// The configuration can't be.
    #[error("{what} is {found}, and must be {expected}")]
    Config {
        /// What of it.
        what: &'static str,
        /// What it is.
        found: usize,
        /// What it may be.
        expected: &'static str,
    },
}
