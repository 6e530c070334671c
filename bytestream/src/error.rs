//! Errors of byte streams: errors of `std::io`, of the kinds that TCP gives, with texts that say
//! what happened.

use std::io::{Error, ErrorKind};

use doorbell_verbs::{Cause, ConnectError, Ending, ListenRefused, OpenError, ResourceError};
use thiserror::Error;

use crate::wire::{NoHello, Refusal, Violation};

/// The reason why a stream is over.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Over {
    /// The peer has closed its end of the connection.
    #[error("the peer has closed the connection")]
    PeerLeft,
    /// The program at this end has closed the connection.
    #[error("this side has closed the connection")]
    Left,
    /// The runtime that served the endpoint has ended.
    #[error(
        "the runtime has ended in which the endpoint of the stream was opened: open endpoints in a \
         runtime that lasts for as long as their streams are used"
    )]
    RuntimeEnded,
    /// The connection broke.
    #[error("{0}")]
    Broken(Cause),
    /// The peer broke the rules of the protocol.
    #[error("the peer broke the protocol of byte streams by sending {0}")]
    Violated(Violation),
}

/// The error of a stream that is over: with which peer it was, and why it is over.
#[derive(Clone, Debug, Error)]
#[error("byte stream with {peer}: {why}")]
struct StreamOver {
    peer: String,
    why: Over,
}

impl From<Ending> for Over {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Left { .. } => Self::Left,
            Ending::PeerLeft { .. } => Self::PeerLeft,
            Ending::Broken(cause) => Self::Broken(cause),
        }
    }
}

impl Over {
    /// Makes the error of a read or a write, with the kind that TCP gives.
    pub fn error(&self, peer: &str, writes: bool) -> Error {
        let kind = match self {
            Self::PeerLeft if writes => ErrorKind::BrokenPipe,
            Self::PeerLeft => ErrorKind::ConnectionReset,
            Self::Left | Self::RuntimeEnded => ErrorKind::ConnectionAborted,
            Self::Broken(
                Cause::NoAnswer { .. } | Cause::NoProgress { .. } | Cause::PeerSilent { .. },
            ) => ErrorKind::TimedOut,
            Self::Broken(Cause::TooLong { .. }) | Self::Violated(_) => ErrorKind::InvalidData,
            Self::Broken(_) => ErrorKind::ConnectionReset,
        };
        Error::new(kind, StreamOver { peer: peer.to_owned(), why: self.clone() })
    }
}

/// The error of a write after this end has shut its writing side down.
pub(crate) fn shut_down(peer: &str) -> Error {
    let what = format!("byte stream with {peer}: the writing side of the stream was shut down");
    Error::new(ErrorKind::BrokenPipe, what)
}

/// The error of a stream that could not be opened.
pub(crate) fn of_connect(name: &str, why: ConnectError) -> Error {
    let kind = match &why {
        ConnectError::Refused { private, .. } => match Refusal::parse(private) {
            Some(refusal) => return refused(name, refusal),
            None => ErrorKind::ConnectionRefused,
        },
        ConnectError::PortClosed { .. } => ErrorKind::ConnectionRefused,
        ConnectError::TimedOut { .. } => ErrorKind::TimedOut,
        ConnectError::Name(_) | ConnectError::Address(_) => ErrorKind::InvalidInput,
        ConnectError::LookUp(_) => ErrorKind::NotFound,
        ConnectError::Reach(_) => ErrorKind::ConnectionRefused,
        ConnectError::Crowded { .. } | ConnectError::Stale { .. } => ErrorKind::ConnectionReset,
        ConnectError::PeerLeft { .. } => ErrorKind::ConnectionReset,
        ConnectError::GivenUp { .. } | ConnectError::Closed { .. } => ErrorKind::ConnectionAborted,
        ConnectError::Resource(_) => ErrorKind::ResourceBusy,
        _ => ErrorKind::Other,
    };
    Error::new(kind, why)
}

fn refused(name: &str, refusal: Refusal) -> Error {
    let what = format!("the listener at {name} refuses the byte stream: {refusal}");
    Error::new(ErrorKind::ConnectionRefused, what)
}

/// The error of a stream that could not be opened because the endpoint here is closed.
pub(crate) fn closed(name: &str) -> Error {
    of_connect(name, ConnectError::Closed { name: name.to_owned() })
}

/// The error of a stream to a listener that has accepted the connection, but does not speak byte
/// streams.
pub(crate) fn no_stream(name: &str, why: NoHello) -> Error {
    let what = format!("the service at {name} is not a listener of byte streams: {why}");
    Error::new(ErrorKind::InvalidData, what)
}

pub(crate) fn of_open(why: OpenError) -> Error {
    let kind = match &why {
        OpenError::Config { .. } | OpenError::Spec(_) => ErrorKind::InvalidInput,
        OpenError::System { source, .. } => source.kind(),
        OpenError::Closed => ErrorKind::ConnectionAborted,
        _ => ErrorKind::Other,
    };
    Error::new(kind, why)
}

pub(crate) fn of_listen(why: ListenRefused) -> Error {
    let kind = match &why {
        ListenRefused::Taken(_) => ErrorKind::AddrInUse,
        ListenRefused::Manager(_) => ErrorKind::AddrInUse,
        ListenRefused::Service(_) => ErrorKind::InvalidInput,
        ListenRefused::NicClosed(_) => ErrorKind::NotConnected,
    };
    Error::new(kind, why)
}

pub(crate) fn of_resource(why: ResourceError) -> Error {
    Error::new(ErrorKind::ResourceBusy, why)
}
