//! Errors of sending and receiving frames.

use doorbell_verbs::Name;
pub use doorbell_verbs::{
    CloseError, ConnectError, GivenUp, NameError, OpenError, SendError, Unsent, WhyGivenUp, WhyGone,
};

/// Why a receive has got no message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The message is longer than the receive has room for. It is lost, as in MPI.
    #[error(
        "receiving at most {room} bytes: the message {bits:#x} of {peer} has {len}; receive it \
         with more room"
    )]
    Truncated {
        /// The peer that has sent the message.
        peer: Name,
        /// The match bits of the message.
        bits: u64,
        /// The length of the message.
        len: u64,
        /// The most bytes that the receive takes, or that a message may have here.
        room: usize,
    },
    /// The receive has taken a message whose remaining data will not come.
    #[error("receiving the {len} bytes of the message {bits:#x} of {peer}: {why}")]
    Lost {
        /// The peer that has sent the message.
        peer: Name,
        /// The match bits of the message.
        bits: u64,
        /// The length of the message.
        len: usize,
        /// The reason why the remaining data will not come.
        why: WhyGone,
    },
    /// The only peer that the receive takes messages of is gone.
    #[error("receiving from {peer} alone: {why}")]
    PeerGone {
        /// The name of the peer's endpoint.
        peer: Name,
        /// The reason why the peer counts as gone.
        why: WhyGone,
    },
    /// The receive was cancelled.
    #[error("the receive was cancelled")]
    Cancelled,
    /// The endpoint was dropped, or its runtime has ended.
    #[error(
        "the endpoint has ended: it or its NIC was closed, it was dropped, or its runtime has ended"
    )]
    Closed,
}

/// Returns the error of a message that is longer than messages may be.
#[cold]
pub(super) fn too_long(to: &Name, len: usize, most: usize) -> SendError {
    SendError::TooLong { peer: to.to_string().into(), what: Unsent::Bytes(len), len, most }
}

/// Returns the error of a message by an endpoint that has ended.
#[cold]
pub(super) fn closed(to: &Name, len: usize) -> SendError {
    SendError::Closed { peer: to.to_string().into(), what: Unsent::Bytes(len) }
}
