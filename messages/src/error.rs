//! Errors of sends and receives.

use doorbell_am::Name;

/// Why a message was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection to the peer ended before the message was sent, or before a receive took the
    /// message of a synchronous send.
    #[error(
        "sending {len} bytes to {peer}: the connection has ended; whether the peer has received \
         them is not known"
    )]
    PeerGone {
        /// The peer's name.
        peer: String,
        /// The length of the message.
        len: usize,
    },
    /// The message is longer than messages may be.
    #[error(
        "sending {len} bytes to {peer}: messages have at most {most} bytes; send several, or raise \
         the endpoint's `eager`"
    )]
    TooLong {
        /// The peer's name.
        peer: String,
        /// The length of the message.
        len: usize,
        /// The length of the longest message that the peer takes.
        most: usize,
    },
}

/// Why a receive has got no message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The message is longer than the receive has room for. It is lost, as in MPI.
    #[error(
        "receiving at most {room} bytes: the message {bits:#x} has {len}; receive it with more room"
    )]
    Truncated {
        /// The match bits of the message.
        bits: u64,
        /// The length of the message.
        len: usize,
        /// The most bytes that the receive takes.
        room: usize,
    },
    /// The connection to the only peer that the receive takes messages of has ended.
    #[error("receiving from one peer: the connection to {peer} has ended")]
    PeerGone {
        /// The peer's name.
        peer: String,
    },
    /// The receive was cancelled.
    #[error("the receive was cancelled")]
    Cancelled,
    /// The endpoint was dropped, or its runtime has ended.
    #[error("the endpoint has ended: it was dropped, or its runtime has ended")]
    Closed,
}

/// Returns a peer's name for error texts.
pub(crate) fn peer_text(name: Option<Name>) -> String {
    name.map_or_else(|| "a peer that has gone".to_owned(), |name| name.to_string())
}
