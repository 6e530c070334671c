//! What a program hears without asking.

use doorbell_core::nic::{Cause, SharedReceiveQueueId};
use doorbell_core::wire::Qpn;

/// Something that happens to a NIC or its queue pairs, asynchronously.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// A queue pair broke.
    Broken(Qpn, Cause),
    /// A queue pair's connection is over: see [`Connection::stand`](crate::Connection::stand). Not
    /// told of one that was asked for in vain, of which whoever asked hears.
    Ended(Qpn),
    /// A shared receive queue has fewer receives than it was
    /// [to tell](crate::SharedReceiveQueue::tell_low) at.
    ReceivesLow(SharedReceiveQueueId),
    /// What comes from a peer comes from another Ethernet address than the connection's: it may
    /// have moved.
    PathChanged(Qpn),
    /// A queue pair takes no more receives from the queue that it shares, for it is broken, or
    /// taken down: told once, see
    /// [`Connection::had_last_receive`](crate::Connection::had_last_receive).
    LastReceive(Qpn),
}
