//! The error of sending, and what sending waits for.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::gone::WhyGone;

/// The most words that go with an Active Message beside its payload.
const MOST_WORDS: usize = 16;

/// The error of a message that was not sent, on any floor above verbs: Active Messages, tagged
/// messages, frames, and messages as streams.
///
/// Each floor returns some of the variants, which say which floors those are.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The peer is gone. Of all floors.
    #[error("sending {what} to {peer}: {why}{}", after(what, why))]
    Gone {
        /// The name of the peer.
        peer: Box<str>,
        /// The message, the bytes or the stream that was to be sent.
        what: Unsent,
        /// The reason why the peer counts as gone.
        why: WhyGone,
    },
    /// The endpoint here has ended. Of tagged messages and frames.
    #[error(
        "sending {what} to {peer}: the endpoint here has ended: it was closed or dropped, or its \
         runtime has ended"
    )]
    Closed {
        /// The name of the peer.
        peer: Box<str>,
        /// The message, the bytes or the stream that was to be sent.
        what: Unsent,
    },
    /// The program has cancelled the send. Of tagged messages.
    #[error("the send was cancelled")]
    Cancelled,
    /// The message is longer than it may be. Of Active Messages, where words beyond sixteen count
    /// as payload, and of frames.
    #[error("sending {what} to {peer}: {}", length_text(what, *.len, *.most))]
    TooLong {
        /// The name of the peer.
        peer: Box<str>,
        /// The message, the bytes or the stream that was to be sent.
        what: Unsent,
        /// The length, in bytes.
        len: usize,
        /// The most bytes that a message may have.
        most: usize,
    },
    /// The arguments have more words than go with placed data. Of Active Messages.
    #[error("{0} words are more than the {MOST_WORDS} that go with what is placed")]
    Words(usize),
    /// The data to be placed does not fit into the peer's segment. Of Active Messages.
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
    /// No peer is mapped at this place of the translation table. Of Active Messages.
    #[error("no peer is mapped at place {0}: map one first (`Endpoint::map`)")]
    NotMapped(usize),
    /// The peer is mapped at no place of the translation table. Of Active Messages.
    #[error("{peer} is not connected to by this endpoint, or was disconnected already")]
    NotConnected {
        /// The name of the peer.
        peer: Box<str>,
    },
    /// A handler of requests or replies has tried to send a request, or to wait. Of Active
    /// Messages.
    #[error(
        "a handler may only reply: what sends requests, or waits, belongs into an asynchronous \
         handler, or a task of its own"
    )]
    InHandler,
    /// No credit came back within the time that the caller was ready to wait. Of Active Messages.
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
    /// The peer has no handler of the name of the message. Of Active Messages and streams.
    #[error("{peer} has no handler `{name}`: {}", known_text(.known.as_deref()))]
    NoHandler {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the kind of message, or of the stream.
        name: &'static str,
        /// The names of the handlers that the peer has, where they are known. Streams do not learn
        /// them.
        known: Option<Box<[String]>>,
    },
    /// The peer's handler of that name has other types. Of Active Messages.
    #[error("`{name}` of {peer}: {}", other_types_text(.here, .there))]
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
    /// The peer was asked which handlers it has, and what it said is no listing of handlers. Of
    /// Active Messages.
    #[error("{peer} was asked which handlers it has, and its answer is no listing of handlers")]
    NoListing {
        /// The name of the peer.
        peer: Box<str>,
    },
    /// The peer was asked which handlers it has, and has not answered. Of Active Messages.
    #[error("{peer} was asked which handlers it has, and has not answered: {why}")]
    NotListed {
        /// The name of the peer.
        peer: Box<str>,
        /// The error of the question.
        why: Box<str>,
    },
    /// The receiver has not pulled the long message. Of tagged messages.
    #[error(
        "sending {what} to {peer}: a receive has taken the message, and has not succeeded in \
         pulling its body; the receiver's error says why"
    )]
    NotReceived {
        /// The name of the peer.
        peer: Box<str>,
        /// The message, the bytes or the stream that was to be sent.
        what: Unsent,
    },
    /// The NIC here has no room for the message. Of tagged messages.
    #[error("sending {what} to {peer}: the message can't be registered: {why}")]
    NoRoom {
        /// The name of the peer.
        peer: Box<str>,
        /// The message, the bytes or the stream that was to be sent.
        what: Unsent,
        /// The resource that is used up.
        why: Box<str>,
    },
    /// The peer's handler has returned without an error, and has not received all of the message.
    /// Of streams.
    #[error(
        "sending `{stream}` to {peer}: its handler has returned before the end of the message, \
         whose rest was discarded"
    )]
    HandlerReturned {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the stream.
        stream: &'static str,
    },
    /// The peer's handler has failed. The rest of the message was discarded. Of streams.
    #[error("sending `{stream}` to {peer}: its handler has failed: {text}")]
    HandlerFailed {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the stream.
        stream: &'static str,
        /// The text of the handler's error, perhaps shortened.
        text: Box<str>,
    },
    /// The peer's handler has panicked. The rest of the message was discarded. Of streams.
    #[error("sending `{stream}` to {peer}: its handler has panicked")]
    HandlerPanicked {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the stream.
        stream: &'static str,
    },
    /// The peer has refused packets of the message, which break the rules. Of streams.
    #[error(
        "sending `{stream}` to {peer}: it has refused packets as beyond the window, or out of \
         order: both sides need the same version, and a policy that keeps messages in order"
    )]
    Refused {
        /// The name of the peer.
        peer: Box<str>,
        /// The name of the stream.
        stream: &'static str,
    },
}

impl SendError {
    /// Returns the name of the peer that the message was for, if the error is about one.
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::Cancelled | Self::Words(_) | Self::NotMapped(_) | Self::InHandler => None,
            Self::Gone { peer, .. }
            | Self::Closed { peer, .. }
            | Self::TooLong { peer, .. }
            | Self::Segment { peer, .. }
            | Self::NotConnected { peer }
            | Self::NoCredit { peer, .. }
            | Self::NoHandler { peer, .. }
            | Self::OtherTypes { peer, .. }
            | Self::NoListing { peer }
            | Self::NotListed { peer, .. }
            | Self::NotReceived { peer, .. }
            | Self::NoRoom { peer, .. }
            | Self::HandlerReturned { peer, .. }
            | Self::HandlerFailed { peer, .. }
            | Self::HandlerPanicked { peer, .. }
            | Self::Refused { peer, .. } => Some(peer),
        }
    }

    /// Returns whether sending the same by this endpoint must fail again, also over a new
    /// connection to the peer, unless one of the two programs is changed.
    ///
    /// After an error that is not final, another attempt may succeed: when the peer has been
    /// connected to again, credits have come back, or a handler does better the next time. The
    /// error does not say that the message had no effect, which sending it again may repeat.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Closed { .. }
            | Self::TooLong { .. }
            | Self::Words(_)
            | Self::Segment { .. }
            | Self::InHandler
            | Self::NoHandler { .. }
            | Self::OtherTypes { .. }
            | Self::NoListing { .. }
            | Self::Refused { .. } => true,
            Self::Gone { .. }
            | Self::Cancelled
            | Self::NotMapped(_)
            | Self::NotConnected { .. }
            | Self::NoCredit { .. }
            | Self::NotListed { .. }
            | Self::NotReceived { .. }
            | Self::NoRoom { .. }
            | Self::HandlerReturned { .. }
            | Self::HandlerFailed { .. }
            | Self::HandlerPanicked { .. } => false,
        }
    }

    /// Returns the text for an error that names the peer and the handler before it. For layers of
    /// this workspace.
    #[doc(hidden)]
    pub fn without_peer(&self) -> String {
        match self {
            Self::Gone { what, why, .. } => format!("{why}{}", after(what, why)),
            Self::TooLong { what, len, most, .. } => length_text(what, *len, *most),
            Self::NoHandler { known, .. } => {
                format!("the peer has no handler of that name: {}", known_text(known.as_deref()))
            }
            Self::OtherTypes { here, there, .. } => other_types_text(here, there),
            why => why.to_string(),
        }
    }
}

/// What was to be sent when sending failed. As text: "a message", "12 bytes", or the name of the
/// stream, "`file`".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// An Active Message.
    Message,
    /// A tagged message, or one of frames, of so many bytes.
    Bytes(usize),
    /// A message of the stream of this name.
    Stream(&'static str),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => f.write_str("a message"),
            Self::Bytes(len) => write!(f, "{len} bytes"),
            Self::Stream(name) => write!(f, "`{name}`"),
        }
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

/// Returns what follows for the sender when a peer is gone, as the end of a sentence.
fn after(what: &Unsent, why: &WhyGone) -> &'static str {
    match (what, why) {
        (Unsent::Message, _) => "; the peer may be connected to again",
        (Unsent::Bytes(_), WhyGone::Unconfirmed(_)) => {
            "; whether the peer has received them is not known, and all messages to it are given up"
        }
        (Unsent::Bytes(_), _) => "; whether the peer has received them is not known",
        (Unsent::Stream(_), _) => "",
    }
}

fn length_text(what: &Unsent, len: usize, most: usize) -> String {
    match what {
        Unsent::Message => format!(
            "a payload of {len} bytes, with the words beyond {MOST_WORDS}, is more than the {most} \
             that the peer takes in a message"
        ),
        _ => format!("messages have at most {most} bytes; send several"),
    }
}

fn segment_text(room: u64) -> String {
    match room {
        0 => "it offers none to this endpoint: it has none (`EndpointConfig::segment`), or it wants a tag \
              by which this endpoint has not mapped it"
            .to_owned(),
        room => format!("it ends at {room}"),
    }
}

/// The most handler names that an error lists.
const MOST_NAMES: usize = 10;

fn known_text(known: Option<&[String]>) -> String {
    let Some(known) = known else {
        return "it has to declare one when it is opened (`EndpointBuilder::handler`)".to_owned();
    };
    if known.is_empty() {
        return "it has no handler that has a name (`Handlers::on`)".to_owned();
    }
    let names: Vec<_> =
        known.iter().take(MOST_NAMES).map(|name| format!("`{}`", name.escape_debug())).collect();
    let more = known.len() - names.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("it has {}{more}", names.join(", "))
}

fn other_types_text(here: &str, there: &str) -> String {
    format!(
        "it is {here} in this program, and {there} at the peer: both must declare the same types, and \
         have the same order of bytes"
    )
}
