//! Errors of sends and receives.

pub use doorbell_verbs::{
    CloseError, ConnectError, GivenUp, OpenError, SendError, Unsent, Unwelcome, WhyGivenUp, WhyGone,
};
use doorbell_verbs::{Ending, Private};

/// Why a receive has got no message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The message is longer than the receive has room for. It is lost with this error, as in MPI.
    #[error(
        "receiving at most {room} bytes: the message {bits:#x} has {len}, and is lost; give such a \
         receive more room or, if it sets none, raise `EndpointBuilder::longest`"
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
        peer: Box<str>,
        /// The reason why the body was not pulled.
        why: String,
    },
    /// The only peer that the receive takes messages of is gone.
    #[error("receiving from {peer} alone: {why}")]
    PeerGone {
        /// The name of the peer that is gone.
        peer: Box<str>,
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

/// Returns why a peer is gone whose connection has ended in this way.
pub(crate) fn why_gone(ending: Option<Ending>) -> WhyGone {
    match ending {
        None => WhyGone::NotConnected,
        Some(Ending::Left { .. }) => WhyGone::EndedHere,
        // Private data says nothing here, and would be kept with the peers that have gone.
        Some(Ending::PeerLeft { .. }) => {
            WhyGone::Ended(Ending::PeerLeft { private: Private::default() })
        }
        Some(ending) => WhyGone::Ended(ending),
    }
}

/// Returns a peer's name for error texts.
pub(crate) fn peer_text(name: Option<&str>) -> Box<str> {
    name.unwrap_or("a peer that has not told its name").into()
}
