//! Errors of calls.

use std::fmt;
use std::time::Duration;

use doorbell_verbs::{Credits, Ending, SendError, Unsent, WhyGone};
use thiserror::Error;

use super::undeliverable::Undeliverable;

/// The call that an error is about. As text: "`add` of udp:127.0.0.1:4000#2a", with the index of
/// the handler if the program has chosen that.
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

    /// Returns the peer's name, or its number if this side has not mapped it.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// Returns the index of the handler that was called, if the program has chosen it.
    pub fn index(&self) -> Option<u16> {
        self.0.index
    }

    /// Returns the name of the handler that was called.
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

/// The thing that a call waited for when its time was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitedFor {
    /// A credit for the request, which was not sent.
    Credit(Credits),
    /// The answer to the request, which was sent. The handler may have run, or may still run.
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

/// The error of a call that has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request of the call was not sent.
    #[error("calling {call}: the request was not sent: {}", .why.without_peer())]
    NotSent {
        /// The call that failed.
        call: Called,
        /// The error of sending the request.
        why: SendError,
    },
    /// The request of the call was not delivered, or not answered.
    #[error("calling {call}: {why}")]
    Undeliverable {
        /// The call that failed.
        call: Called,
        /// The reason that the peer gave, or that is known here.
        why: Undeliverable,
    },
    /// The peer has gone before it answered.
    #[error(
        "calling {call}: the peer has gone, and whether the handler has run is not known: {ending}"
    )]
    PeerGone {
        /// The call that failed.
        call: Called,
        /// How the connection to the peer ended.
        ending: Ending,
    },
    /// The caller's time was over: that of [`Peer::within`](crate::Peer::within), or of the
    /// endpoint's [configuration](crate::EndpointConfig::deadline).
    #[error("calling {call}: {}", deadline_text(*.within, .waited_for))]
    Deadline {
        /// The call that failed.
        call: Called,
        /// The time that the call had.
        within: Duration,
        /// The thing that the call waited for in the end.
        waited_for: WaitedFor,
    },
    /// The handler has returned an error.
    #[error("calling {call}: its handler failed: {text}")]
    Failed {
        /// The call that failed.
        call: Called,
        /// The text of the error, and those of its sources.
        text: Box<str>,
    },
    /// The reply is no value of the type that both sides have declared.
    #[error("calling {call}: what came back is no value of the type of its answer")]
    NoAnswer {
        /// The call that failed.
        call: Called,
    },
    /// The reply is for another reply handler than the caller expects.
    #[error(
        "the reply is for reply handler {found}, and `{expected}` (reply handler {index}) was expected, \
         or its arguments are others: both sides must declare the same"
    )]
    OtherReply {
        /// The index of the reply handler that the reply is for.
        found: u16,
        /// The index of the expected reply handler.
        index: u16,
        /// The name of the expected reply handler.
        expected: &'static str,
    },
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
    /// Returns the error with another call as the one that it is about.
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

    /// Returns the error of a message that is no call, and that was not sent because this question
    /// about its handler has no answer.
    #[cold]
    pub(crate) fn of_a_question(self, peer: Box<str>) -> SendError {
        match self {
            Self::NotSent { why, .. } => why,
            Self::PeerGone { ending, .. } => {
                SendError::Gone { peer, what: Unsent::Message, why: WhyGone::Ended(ending) }
            }
            why => SendError::NotListed { peer, why: why.to_string().into() },
        }
    }

    /// Returns the text of the error that the handler has returned, if the call failed by that.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the reason why the request was not delivered or not answered, if the request was
    /// sent and the reason is known.
    pub fn undeliverable(&self) -> Option<Undeliverable> {
        match self {
            Self::Undeliverable { why, .. } => Some(*why),
            Self::PeerGone { .. } => Some(Undeliverable::PeerGone),
            _ => None,
        }
    }
}
