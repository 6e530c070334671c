//! Errors of endpoints of frames.

use std::time::Duration;

use doorbell_verbs::Name;

/// Why a message was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The peer has not answered in time.
    #[error(
        "sending {len} bytes to {peer}: nothing has confirmed them for {waited:?}; the peer has no \
         receive posted that they match, or is gone; whether it has received them is not known, \
         and all messages to it are given up"
    )]
    PeerSilent {
        /// The name of the peer that the message was for.
        peer: Name,
        /// The length of the message.
        len: usize,
        /// How long the peer may take, as configured.
        waited: Duration,
    },
    /// The peer has closed its endpoint.
    #[error(
        "sending {len} bytes to {peer}: the peer has closed its endpoint; whether it has received \
         them is not known"
    )]
    PeerClosed {
        /// The name of the peer that the message was for.
        peer: Name,
        /// The length of the message.
        len: usize,
    },
    /// The message is longer than messages may be.
    #[error("sending {len} bytes to {peer}: messages have at most {most} bytes; send several")]
    TooLong {
        /// The name of the peer that the message was for.
        peer: Name,
        /// The length of the message.
        len: usize,
        /// The length of the longest message.
        most: usize,
    },
    /// The endpoint was dropped, or its runtime has ended.
    #[error(
        "sending {len} bytes to {peer}: the endpoint has ended; it was dropped, or its runtime \
         has ended"
    )]
    Closed {
        /// The name of the peer that the message was for.
        peer: Name,
        /// The length of the message.
        len: usize,
    },
}

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
        why: PeerLost,
    },
    /// The only peer that the receive takes messages of is gone.
    #[error("receiving from {peer} alone: {why}")]
    PeerGone {
        /// The name of the peer's endpoint.
        peer: Name,
        /// The reason why the peer counts as gone.
        why: PeerLost,
    },
    /// The receive was cancelled.
    #[error("the receive was cancelled")]
    Cancelled,
    /// The endpoint was dropped, or its runtime has ended.
    #[error("the endpoint has ended: it was dropped, or its runtime has ended")]
    Closed,
}

/// Why the rest of a message will not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PeerLost {
    /// The peer is silent.
    #[error("nothing has come from the peer for {0:?}; it has ended, or is not reached any more")]
    Silent(Duration),
    /// The peer has given its messages up.
    #[error("the peer has given up its messages, and begun anew")]
    Anew,
    /// The peer has closed its endpoint.
    #[error("the peer has closed its endpoint")]
    Closed,
}
