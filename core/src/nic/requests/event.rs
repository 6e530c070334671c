//! Events: what a program is told without asking each queue.

use crate::nic::identifiers::{CompletionQueueId, SharedReceiveQueueId};
use crate::nic::requests::failure::Cause;
use crate::wire::Qpn;
use crate::wire::cm::QuotedRequest;

/// Something that a program is told without asking each queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A completion came to a queue that was [armed](crate::nic::Nic::arm) for it.
    Completion(CompletionQueueId),
    /// A queue pair broke, or was told to stop.
    Broken(Qpn, Cause),
    /// The peer of a queue pair that is ready to receive, and not yet to send, has begun to send:
    /// so the peer knows that the connection is established, though its message that says so may
    /// have been lost.
    Established(Qpn),
    /// A draining queue pair has nothing under way any more.
    Drained(Qpn),
    /// A shared receive queue has fewer receives than the limit that was
    /// [set](crate::nic::Nic::tell_low).
    ReceivesLow(SharedReceiveQueueId),
    /// Packets of a queue pair's peer come from another Ethernet address than its path leads to:
    /// the peer may have moved. [`redirect`](crate::nic::Nic::redirect) lets the queue pair follow.
    PathChanged(Qpn),
    /// A broken queue pair takes no more receives from its shared receive queue.
    LastReceive(Qpn),
    /// The system of a peer's host says that nobody is at the port to which a management datagram
    /// was sent, and quotes that datagram, a request for a connection. Anybody can forge such a
    /// message, but must guess the transaction. The connection manager
    /// [judges](crate::cm::ConnectionManager::port_closed) it.
    RequestBounced(QuotedRequest),
}

impl Event {
    /// The queue pair that the event is about, if it is about one.
    pub(crate) fn queue_pair(&self) -> Option<Qpn> {
        match *self {
            Self::Broken(qpn, _)
            | Self::Drained(qpn)
            | Self::Established(qpn)
            | Self::PathChanged(qpn)
            | Self::LastReceive(qpn) => Some(qpn),
            Self::Completion(_) | Self::ReceivesLow(_) | Self::RequestBounced(_) => None,
        }
    }
}
