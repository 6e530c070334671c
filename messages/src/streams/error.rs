//! Errors of sending and receiving.

pub use doorbell_verbs::{
    CloseError, ConnectError, GivenUp, OpenError, SendError, Unsent, WhyGivenUp, WhyGone,
};

/// Why a handler receives no more of a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The message has ended, and has fewer bytes than were to be received.
    #[error("receiving {wanted} bytes of `{stream}` from {peer}: the message ends after {got}")]
    Ended {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
        /// How many bytes were to be received.
        wanted: usize,
        /// How many there were.
        got: usize,
    },
    /// The sender has given the message up: it was dropped without an end.
    #[error("receiving `{stream}` from {peer}: its sender has dropped the message without an end")]
    Abandoned {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
    },
    /// The connection to the peer has ended.
    #[error("receiving `{stream}` from {peer}: the connection has ended before the message")]
    PeerGone {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
    },
    /// The sender has sent packets that break the rules, and the message was cut off.
    #[error("receiving `{stream}` from {peer}: it has sent more than it may")]
    Violation {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
    },
    /// A message has a rest that is longer than the handler takes.
    #[error("receiving the rest of `{stream}` from {peer}: it has more than {most} bytes")]
    TooLong {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
        /// The most bytes that the handler takes.
        most: usize,
    },
    /// The handler of the message has returned already, or the endpoint was dropped.
    #[error("receiving `{stream}` from {peer}: the message's handler has ended")]
    HandlerEnded {
        /// The name of the peer.
        peer: String,
        /// The name of the stream.
        stream: &'static str,
    },
}

/// The error that a handler returns: any error, or a text.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;
