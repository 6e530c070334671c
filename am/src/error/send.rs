//! Errors of sending.

use std::fmt;
use std::time::Duration;

use doorbell_verbs::Ending;
use doorbell_verbs::floor::ending_text;
use thiserror::Error;

use crate::wire::MOST_WORDS;

/// The error of a message that was not sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No peer is mapped at this place of the translation table.
    #[error("no peer is mapped at place {0}: map one first (`Endpoint::map`)")]
    NotMapped(usize),
    /// The peer is mapped at no place of the translation table.
    #[error("{peer} is not connected to by this endpoint, or was disconnected already")]
    NotConnected {
        /// The name of the peer.
        peer: Box<str>,
    },
    /// The connection to the peer is over.
    #[error("{peer} has gone: {}; it may be connected to again", ending_text(.ending))]
    Gone {
        /// The name of the peer.
        peer: Box<str>,
        /// How its connection ended.
        ending: Ending,
    },
    /// A handler of requests or replies has tried to send a request, or to wait.
    #[error(
        "a handler may only reply: what sends requests, or waits, belongs into an asynchronous \
         handler, or a task of its own"
    )]
    InHandler,
    /// The payload, with the words beyond sixteen, is longer than the peer takes in a message.
    #[error(
        "a payload of {len} bytes, with the words beyond {MOST_WORDS}, is more than the {most} that \
         the peer takes in a message"
    )]
    Payload {
        /// The length of the payload, in bytes.
        len: usize,
        /// The longest payload that the peer takes.
        most: usize,
    },
    /// The arguments have more words than go with placed data.
    #[error("{0} words are more than the {MOST_WORDS} that go with what is placed")]
    Words(usize),
    /// The data to be placed does not fit into the peer's segment.
    #[error(
        "placing {len} bytes at offset {offset} of the segment of {peer}: {}",
        segment_text(*.room)
    )]
    Segment {
        /// The name of the peer.
        peer: Box<str>,
        /// The offset in the segment.
        offset: u64,
        /// The length of the data, in bytes.
        len: u64,
        /// The length of the segment; 0 if the peer offers this endpoint no segment.
        room: u64,
    },
    /// The peer has no handler of the name of the kind of message.
    #[error("{peer} has no handler `{name}`: {}", known_text(.known))]
    NoHandler {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the kind of message.
        name: &'static str,
        /// The names of the handlers that the peer has.
        known: Box<[String]>,
    },
    /// The peer's handler of that name has other types.
    #[error(
        "`{name}` of {peer}: {}",
        other_types_text(.here, .there)
    )]
    OtherTypes {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the kind of message.
        name: &'static str,
        /// The types that this program has declared.
        here: Box<str>,
        /// The types that the peer has declared.
        there: Box<str>,
    },
    /// The peer was asked which handlers it has, and what it said is no listing of handlers.
    #[error("{peer} was asked which handlers it has, and its answer is no listing of handlers")]
    NoListing {
        /// The name of the peer.
        peer: Box<str>,
    },
    /// The peer was asked which handlers it has, and has not answered.
    #[error("{peer} was asked which handlers it has, and has not answered: {why}")]
    NotListed {
        /// The name of the peer.
        peer: Box<str>,
        /// The error of the question.
        why: Box<str>,
    },
    /// No credit came back within the time that the caller was ready to wait.
    #[error(
        "no credit for another request to {peer} came back within {within:?}: {credits}. The \
         handlers of those are slow, or stuck; the peer's `EndpointConfig::credits` says how many may be \
         under way"
    )]
    NoCredit {
        /// The name of the peer.
        peer: Box<str>,
        /// The time that the caller was ready to wait.
        within: Duration,
        /// The requests that have the credits.
        credits: Credits,
    },
}

pub(super) fn other_types_text(here: &str, there: &str) -> String {
    format!(
        "it is {here} in this program, and {there} at the peer: both must declare the same types, and \
         have the same order of bytes"
    )
}

/// The most handler names that an error lists.
const MOST_NAMES: usize = 10;

pub(super) fn known_text(known: &[String]) -> String {
    if known.is_empty() {
        return "it has no handler that has a name (`Handlers::on`)".to_owned();
    }
    let names: Vec<_> =
        known.iter().take(MOST_NAMES).map(|name| format!("`{}`", name.escape_debug())).collect();
    let more = known.len() - names.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("it has {}{more}", names.join(", "))
}

fn segment_text(room: u64) -> String {
    match room {
        0 => "it offers none to this endpoint: it has none (`EndpointConfig::segment`), or it wants a tag \
              by which this endpoint has not mapped it"
            .to_owned(),
        room => format!("it ends at {room}"),
    }
}

/// The requests that have the credits of a peer when none is left for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credits {
    /// The number of requests under way, calls among them.
    pub under_way: u16,
    /// The number of calls among them that this side has given up, by dropping them or because
    /// their time was over, and whose handlers go on.
    pub given_up: u16,
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { under_way, given_up } = self;
        let requests = if *under_way == 1 { "request is" } else { "requests are" };
        let calls = if *given_up == 1 { "is a call" } else { "are calls" };
        write!(
            f,
            "{under_way} {requests} under way, of which {given_up} {calls} that this side has given up"
        )
    }
}
