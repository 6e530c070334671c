//! Asynchronous events, which programs may subscribe to.

use doorbell_core::nic::{Cause, SharedReceiveQueueId};
use doorbell_core::wire::Qpn;

/// An asynchronous event of a NIC or of one of its queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// A queue pair broke, for the given cause.
    Broken(Qpn, Cause),
    /// The connection of a queue pair has ended. There is no such event for a connection that was
    /// never established: the task that asked for it gets an error.
    Ended(Qpn),
    /// A shared receive queue has fewer receives than the
    /// [limit](crate::SharedReceiveQueue::tell_low) that was set.
    ReceivesLow(SharedReceiveQueueId),
    /// Packets of a peer come from another Ethernet address than the connection's: the peer may
    /// have moved.
    PathChanged(Qpn),
    /// A queue pair, broken or taken down, takes no more receives from its shared receive queue.
    /// The event comes once. See
    /// [`Connection::had_last_receive`](crate::Connection::had_last_receive).
    LastReceive(Qpn),
    /// The NIC was [closed](crate::Nic::close). No other event follows.
    NicClosed,
}
