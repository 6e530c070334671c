//! Why a peer counts as gone.

use std::time::Duration;

use thiserror::Error;

use crate::link::Ending;

/// The reason why a peer counts as gone, for errors of sending to it and of receiving from it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum WhyGone {
    /// The connection to the peer has ended. On all floors but frames, which have no connections.
    #[error("the connection has ended: {}", ending_text(.0))]
    Ended(Ending),
    /// This side has ended the connection, because the endpoint or its NIC was closed, its runtime
    /// has ended, or the peer broke the rules of the protocol. Of tagged messages.
    #[error(
        "the connection has ended: this side ended it, since the endpoint or its NIC was closed, \
         its runtime has ended, or the peer broke the rules of the protocol"
    )]
    EndedHere,
    /// The peer is not connected. Of tagged messages.
    #[error("the peer is not connected")]
    NotConnected,
    /// The connection has ended so long ago that the reason is forgotten. Of tagged messages.
    #[error("the connection has ended long ago")]
    LongAgo,
    /// The peer has closed its endpoint. Of frames.
    #[error("the peer has closed its endpoint")]
    Closed,
    /// Nothing has come from the peer for so long. Of frames that are received.
    #[error("nothing has come from the peer for {0:?}; it has ended, or is not reached any more")]
    Silent(Duration),
    /// Nothing has confirmed a message to the peer for so long. Of frames that are sent.
    #[error(
        "nothing has confirmed the message for {0:?}; the peer has no receive posted that it \
         matches, or is gone"
    )]
    Unconfirmed(Duration),
    /// The peer has given its messages up, and begun anew. Of frames that are received.
    #[error("the peer has given up its messages, and begun anew")]
    Anew,
}

/// Returns the text how a connection has ended. If this side has ended it, the text names what the
/// program did.
pub(super) fn ending_text(ending: &Ending) -> String {
    match ending {
        Ending::Left { .. } => {
            "this side ended the connection: its `Endpoint` was closed or dropped, or has unmapped \
             the peer, or its NIC was closed"
                .to_owned()
        }
        ending => ending.to_string(),
    }
}
