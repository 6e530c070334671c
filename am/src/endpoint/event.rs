//! What a program hears of an endpoint without asking.

use doorbell_verbs::Ending;

use crate::peer::Peer;

/// Something that happens to an endpoint. See [`Endpoint::events`](crate::Endpoint::events).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// There is a link to a peer: it has mapped this endpoint, or this endpoint it.
    Linked(Peer),
    /// A link is over, and why.
    Gone(Peer, Ending),
    /// A peer had more requests under way than it may, and was cut off: its link is over.
    Overrun(Peer),
}
