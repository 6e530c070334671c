//! What goes wrong, and why.

use std::fmt;
use std::io;
use std::time::Duration;

use doorbell_verbs::{ConnectError, Ending, ListenRefused, NicError, RegisterError, ResourceError};
use thiserror::Error;

use crate::name::NameError;
use crate::wire::{MOST_WORDS, Tag};

/// Why a request was not delivered, or not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Undeliverable {
    /// The endpoint does not admit this side: it wants another tag than this side shows, or this
    /// side shows none, or the endpoint admits nobody.
    #[error(
        "the endpoint does not admit this side: it wants a tag that this side does not show, or it admits \
         nobody"
    )]
    WrongTag = 1,
    /// The endpoint has no such handler.
    #[error("the endpoint has no handler of this index: it must declare the same as its peers")]
    NoHandler,
    /// The words are not the arguments of the handler.
    #[error(
        "the endpoint's handler has other arguments, or a value is none of their types, as of an enum that has \
         other variants there: both sides must declare the same"
    )]
    Arguments,
    /// The handler panicked.
    #[error("the handler panicked, and has not replied: the peer's process has said why")]
    Panicked,
    /// The handler has not replied in time.
    #[error(
        "the handler has not replied within the patience of this endpoint \
         (`EndpointConfig::patience`)"
    )]
    NoReply,
    /// The handler has ended without a reply to a call.
    #[error("the handler has ended without a reply")]
    Unanswered,
    /// What the handler replied is more than the requester takes.
    #[error(
        "the handler's reply is longer than this endpoint takes in a message \
         (`EndpointConfig::payload`)"
    )]
    LongReply,
    /// What was to be placed in the endpoint's segment does not fit.
    #[error("the endpoint's segment has no room for it there")]
    Segment,
    /// The endpoint has gone, or the way there.
    #[error("the peer has gone: whether the handler has run is not known")]
    PeerGone,
    /// Too many asynchronous handlers of the endpoint are under way, of peers that have gone, too.
    #[error("the endpoint has too many asynchronous handlers under way: it may be tried again")]
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
    #[error("no peer is mapped at place {0}: map one first (`Endpoint::map`)")]
    NotMapped(usize),
    /// The peer is mapped at no place.
    #[error("{peer} is not connected to by this endpoint, or was disconnected already")]
    NotConnected {
        /// The peer.
        peer: Box<str>,
    },
    /// The peer has gone.
    #[error("{peer} has gone: {}; it may be connected to again", ending_text(.ending))]
    Gone {
        /// The peer.
        peer: Box<str>,
        /// How its connection ended.
        ending: Ending,
    },
    /// A handler of requests or replies wanted to send a request, or to wait.
    #[error(
        "a handler may only reply: what sends requests, or waits, belongs into an asynchronous \
         handler, or a task of its own"
    )]
    InHandler,
    /// The payload, with what there is of words beyond sixteen, is longer than the peer takes in a
    /// message.
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
    #[error(
        "placing {len} bytes at offset {offset} of the segment of {peer}: {}",
        segment_text(*.room)
    )]
    Segment {
        /// The peer.
        peer: Box<str>,
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
        /// How long the segment is; none if the peer offers none to this endpoint.
        room: u64,
    },
    /// The peer has no handler of the name of the kind of message.
    #[error("{peer} has no handler `{name}`: {}", known_text(.known))]
    NoHandler {
        /// The peer.
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
        /// The peer.
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
        /// The peer.
        peer: Box<str>,
    },
    /// The peer was asked which handlers it has, and has not answered.
    #[error("{peer} was asked which handlers it has, and has not answered: {why}")]
    NotListed {
        /// The peer.
        peer: Box<str>,
        /// Why.
        why: Box<str>,
    },
    /// There was no credit within the time that was given for it.
    #[error(
        "no credit for another request to {peer} came back within {within:?}: {credits}. The \
         handlers of those are slow, or stuck; the peer's `EndpointConfig::credits` says how many may be \
         under way"
    )]
    NoCredit {
        /// The peer.
        peer: Box<str>,
        /// How long it was waited for.
        within: Duration,
        /// Who has the credits.
        credits: Credits,
    },
}

/// How a link has ended. When this side has ended it, that was by what its program did.
fn ending_text(ending: &Ending) -> String {
    match ending {
        Ending::Left { .. } => {
            "this side ended the connection: its `Endpoint` was dropped, or has unmapped the peer"
                .to_owned()
        }
        ending => ending.to_string(),
    }
}

fn other_types_text(here: &str, there: &str) -> String {
    format!(
        "it is {here} in this program, and {there} at the peer: both must declare the same types, and \
         have the same order of bytes"
    )
}

/// The most names that an error lists.
const MOST_NAMES: usize = 10;

fn known_text(known: &[String]) -> String {
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

/// Who has the credits of a peer when there is none for another request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credits {
    /// How many requests are under way, calls among them.
    pub under_way: u16,
    /// How many of them are calls that were dropped, or whose time was over, and whose handlers go
    /// on.
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

/// Which call an error is about. It reads as "`add` of udp:127.0.0.1:4000#2a"; with the index of
/// the handler, if the program has chosen that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Called(Box<Which>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Which {
    peer: Box<str>,
    index: Option<u16>,
    handler: &'static str,
}

impl Called {
    #[cold]
    pub(crate) fn new(peer: Box<str>, index: Option<u16>, handler: &'static str) -> Self {
        Self(Box::new(Which { peer, index, handler }))
    }

    /// The peer: its name, where this side has mapped it.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// The index of the handler that was called, if the program has chosen it.
    pub fn index(&self) -> Option<u16> {
        self.0.index
    }

    /// The name of the handler that was called.
    pub fn handler(&self) -> &'static str {
        self.0.handler
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Which { peer, index, handler } = &*self.0;
        match index {
            Some(index) => write!(f, "`{handler}` (request handler {index}) of {peer}"),
            None => write!(f, "`{handler}` of {peer}"),
        }
    }
}

/// What a call waited for when its time was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitedFor {
    /// For a credit: its request was not sent.
    Credit(Credits),
    /// For the answer: its request was sent, and its handler may have run, or may run still.
    Answer,
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credit(credits) => write!(f, "a credit: {credits}"),
            Self::Answer => write!(f, "the answer: whether the handler has run is not known"),
        }
    }
}

/// Why a call has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// Its request was not sent.
    #[error("calling {call}: the request was not sent: {}", told_without_peer(.why))]
    NotSent {
        /// Which call.
        call: Called,
        /// Why.
        why: SendError,
    },
    /// Its request was not delivered, or not answered.
    #[error("calling {call}: {why}")]
    Undeliverable {
        /// Which call.
        call: Called,
        /// Why.
        why: Undeliverable,
    },
    /// The peer has gone before it answered.
    #[error(
        "calling {call}: the peer has gone, and whether the handler has run is not known: {ending}"
    )]
    PeerGone {
        /// Which call.
        call: Called,
        /// How its connection ended.
        ending: Ending,
    },
    /// The caller's time was over: that of [`Peer::within`](crate::Peer::within), or of the
    /// endpoint's [configuration](crate::EndpointConfig::deadline).
    #[error("calling {call}: {}", deadline_text(*.within, .waited_for))]
    Deadline {
        /// Which call.
        call: Called,
        /// How long it had.
        within: Duration,
        /// What it waited for in the end.
        waited_for: WaitedFor,
    },
    /// The handler has returned an error.
    #[error("calling {call}: its handler failed: {text}")]
    Failed {
        /// Which call.
        call: Called,
        /// The text of the error, and those of its sources.
        text: Box<str>,
    },
    /// What came back is no value of the type that both sides have declared.
    #[error("calling {call}: what came back is no value of the type of its answer")]
    NoAnswer {
        /// Which call.
        call: Called,
    },
    /// What was replied is not what was expected.
    #[error(
        "the reply is for reply handler {found}, and `{expected}` (reply handler {index}) was expected, \
         or its arguments are others: both sides must declare the same"
    )]
    OtherReply {
        /// The handler that it was for.
        found: u16,
        /// The index of the one that was expected.
        index: u16,
        /// The one that was expected.
        expected: &'static str,
    },
}

/// Why a request was not sent, in an error that has named the peer already.
fn told_without_peer(why: &SendError) -> String {
    match why {
        SendError::Gone { ending, .. } => {
            format!("{}; the peer may be connected to again", ending_text(ending))
        }
        SendError::NoHandler { known, .. } => {
            format!("the peer has no handler of that name: {}", known_text(known))
        }
        SendError::OtherTypes { here, there, .. } => other_types_text(here, there),
        why => why.to_string(),
    }
}

fn deadline_text(within: Duration, waited_for: &WaitedFor) -> String {
    match waited_for {
        WaitedFor::Credit(credits) => format!(
            "the request was not sent, since no credit came back within {within:?}, the caller's \
             deadline: {credits}"
        ),
        WaitedFor::Answer => format!(
            "no answer within {within:?}, the caller's deadline: the request was sent, and whether its \
             handler has run is not known"
        ),
    }
}

impl CallError {
    /// The same about another call.
    #[cold]
    pub(crate) fn about(mut self, of: Called) -> Self {
        match &mut self {
            Self::NotSent { call, .. }
            | Self::Undeliverable { call, .. }
            | Self::PeerGone { call, .. }
            | Self::Deadline { call, .. }
            | Self::Failed { call, .. }
            | Self::NoAnswer { call } => *call = of,
            Self::OtherReply { .. } => {}
        }
        self
    }

    /// Why something that is no call was not sent, since this question of it has no answer.
    #[cold]
    pub(crate) fn of_a_question(self, peer: Box<str>) -> SendError {
        match self {
            Self::NotSent { why, .. } => why,
            Self::PeerGone { ending, .. } => SendError::Gone { peer, ending },
            why => SendError::NotListed { peer, why: why.to_string().into() },
        }
    }

    /// The text of the error that the handler has returned, if that is why there is no answer.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Why the request was not delivered or not answered by the peer, if it was sent and that is
    /// known.
    pub fn undeliverable(&self) -> Option<Undeliverable> {
        match self {
            Self::Undeliverable { why, .. } => Some(*why),
            Self::PeerGone { .. } => Some(Undeliverable::PeerGone),
            _ => None,
        }
    }
}

/// Why a peer was not mapped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The peer was not reached, or its connection manager refuses.
    #[error("mapping {name}: it can't be connected to")]
    Connect {
        /// The peer.
        name: String,
        /// Why.
        #[source]
        why: ConnectError,
    },
    /// There is no room for another peer here.
    #[error("mapping {name}: this endpoint has no room for another peer")]
    NoRoom {
        /// The peer.
        name: String,
        /// Why.
        #[source]
        why: OpenError,
    },
    /// The peer's endpoint refuses this one.
    #[error("mapping {name}: its endpoint refuses: {why}")]
    Refused {
        /// The peer.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The peer's endpoint does not admit the tag that was shown, or a peer that shows none, or
    /// anybody.
    #[error(
        "mapping {name}: its endpoint does not admit {}: if it wants a tag, map it with that one; if it \
         admits nobody, or others, have it admit this side (`EndpointConfig::admits`, \
         `Endpoint::set_admits`)",
        shown.map_or_else(|| "a peer without a tag".to_owned(), |tag| tag.to_string())
    )]
    Tag {
        /// The peer.
        name: String,
        /// The tag that was shown.
        shown: Option<Tag>,
    },
    /// The text names no endpoint.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Whoever answers there is no endpoint.
    #[error("mapping {0}: what answers there is no endpoint of Active Messages of this version")]
    NoEndpoint(String),
    /// A peer is mapped at the place already.
    #[error(
        "mapping {name}: place {index} is taken by {}: unmap that first, or take another place",
        if .there == .name { "this same peer" } else { .there.as_str() }
    )]
    Taken {
        /// The peer that was to be mapped.
        name: String,
        /// The place.
        index: usize,
        /// The peer that is mapped there.
        there: String,
    },
    /// The place is too far out.
    #[error(
        "mapping {name} at place {index}: this endpoint has the places below {most}: configure more of \
         them (`EndpointConfig::places`), or take one of these"
    )]
    Place {
        /// The peer that was to be mapped.
        name: String,
        /// The place.
        index: usize,
        /// How many there are.
        most: usize,
    },
    /// Both have a handler of the same index that is not the same.
    #[error(
        "mapping {name}: the endpoints' handlers differ: at {index} of the {table} it has `{there}`, and \
         this side another, or one with other arguments: both must declare the same"
    )]
    Handlers {
        /// The peer.
        name: String,
        /// Of requests, or of replies.
        table: &'static str,
        /// Where.
        index: u16,
        /// What is there on the peer's.
        there: String,
    },
    /// The peer has gone, or does not answer what endpoints ask each other, before it was mapped.
    #[error("mapping {name}: it was connected to, and then lost")]
    Lost {
        /// The peer.
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
    /// The device can't be opened, or the NIC's configuration can't be.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The NIC has no room.
    #[error(transparent)]
    Resources(#[from] ResourceError),
    /// The segment was not registered.
    #[error("registering the segment of the endpoint (`EndpointConfig::segment`)")]
    Segment(#[from] RegisterError),
    /// The name is taken.
    #[error(transparent)]
    Listen(#[from] ListenRefused),
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
    /// The runtime has ended in which the endpoint was opened.
    #[error(
        "the runtime in which the endpoint was opened has ended, and closed the endpoint: open endpoints \
         in a runtime that lasts for as long as they are used"
    )]
    RuntimeEnded,
    /// There is no runtime here, and what is opened needs one.
    #[error(
        "there is no Tokio runtime here, and {what} is served by the one in which it is opened: open \
         it in async code that a runtime runs, as within `Runtime::block_on`"
    )]
    NoRuntime {
        /// What was to be opened.
        what: &'static str,
    },
    /// There is no runtime here, and none could be made.
    #[error("starting a thread with a runtime for the bundle, where there is no runtime")]
    Runtime(#[from] io::Error),
    /// The configuration can't be.
    #[error("{field} is {found}, and must be {expected}: {why}")]
    Config {
        /// Which field.
        field: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: String,
        /// Why.
        why: &'static str,
    },
    /// A completion queue of the bundle has no entry for another peer.
    #[error(
        "the {has} entries of the bundle (`BundleConfig::receives`) are one each for as many peers: unmap \
         some, or configure more"
    )]
    Completions {
        /// How many there are.
        has: usize,
    },
    /// There are no receives for another peer.
    #[error(
        "the {0} receives of the endpoint (`EndpointConfig::receives`) are promised to its peers, and \
         none gives one up: unmap some, or configure more"
    )]
    Receives(usize),
}
