//! Errors of sends and receives.

use doorbell_verbs::Ending;
pub use doorbell_verbs::{CloseError, ConnectError, GivenUp, OpenError, Unwelcome, WhyGivenUp};

/// Why a message was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection to the peer ended before the message was sent, or before a receive took the
    /// message of a synchronous send.
    #[error(
        "sending {len} bytes to {peer}: the connection has ended: {why}; whether the peer has \
         received them is not known"
    )]
    PeerGone {
        /// The name of the peer that the message was for.
        peer: String,
        /// The length of the message.
        len: usize,
        /// The reason why the connection has ended.
        why: String,
    },
    /// The receiver has not pulled the long message.
    #[error(
        "sending {len} bytes to {peer}: a receive has taken the message, and has not succeeded in \
         pulling its body; the receiver's error says why"
    )]
    NotReceived {
        /// The name of the peer that the message was for.
        peer: String,
        /// The length of the message.
        len: usize,
    },
    /// The NIC here has no room for the message.
    #[error("sending {len} bytes to {peer}: the message can't be registered: {why}")]
    NoRoom {
        /// The name of the peer that the message was for.
        peer: String,
        /// The length of the message.
        len: usize,
        /// The resource that is used up.
        why: String,
    },
    /// The send was cancelled.
    #[error("the send was cancelled")]
    Cancelled,
    /// The endpoint by which the message was sent was dropped, or its runtime has ended.
    #[error(
        "sending {len} bytes to {peer}: the endpoint here has ended: it was dropped, or its \
         runtime has ended"
    )]
    Closed {
        /// The name of the peer that the message was for.
        peer: String,
        /// The length of the message.
        len: usize,
    },
}

/// Why a receive has got no message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The message is longer than the receive has room for. It is lost with this error, as in MPI.
    #[error(
        "receiving at most {room} bytes: the message {bits:#x} has {len}; receive it with more \
         room, and with `EndpointBuilder::longest` of as much"
    )]
    Truncated {
        /// The match bits of the message.
        bits: u64,
        /// The length of the message.
        len: usize,
        /// The most bytes that the receive takes.
        room: usize,
    },
    /// The receive has taken a long message whose body can't be pulled from its sender.
    #[error(
        "receiving the message {bits:#x} of {len} bytes from {peer}: its body was not pulled: {why}"
    )]
    NotPulled {
        /// The match bits of the message.
        bits: u64,
        /// The length of the message.
        len: usize,
        /// The name of the peer that has sent the message.
        peer: String,
        /// The reason why the body was not pulled.
        why: String,
    },
    /// The connection to the only peer that the receive takes messages of has ended.
    #[error("receiving from one peer: the connection to {peer} has ended: {why}")]
    PeerGone {
        /// The name of the peer whose connection has ended.
        peer: String,
        /// The reason why the connection has ended.
        why: String,
    },
    /// The receive was cancelled.
    #[error("the receive was cancelled")]
    Cancelled,
    /// The endpoint was dropped, or its runtime has ended.
    #[error("the endpoint has ended: it was dropped, or its runtime has ended")]
    Closed,
}

/// Returns why a connection has ended, for error texts.
pub(crate) fn ending_text(ending: Option<Ending>) -> String {
    match ending {
        None => "the peer is not connected".to_owned(),
        Some(Ending::Left { .. }) => {
            "this side ended it, since the peer broke the rules of the protocol".to_owned()
        }
        Some(ending) => ending.to_string(),
    }
}

/// Returns a peer's name for error texts.
pub(crate) fn peer_text(name: Option<&str>) -> String {
    name.unwrap_or("a peer that has not told its name").to_owned()
}
