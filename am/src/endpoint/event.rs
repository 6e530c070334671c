//! Events of an endpoint, which programs subscribe to.

use doorbell_verbs::Ending;

use crate::peer::Peer;

/// An event of an endpoint. See [`Endpoint::events`](crate::Endpoint::events).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A connection to a peer stands, since one side has mapped the other.
    Linked(Peer),
    /// The connection to a peer is over, for the given reason, and all messages of the peer are
    /// handled.
    Gone(Peer, Ending),
    /// A peer was cut off, since it had more requests under way than it may, or broke the rules of
    /// a layer above.
    Overrun(Peer),
}
