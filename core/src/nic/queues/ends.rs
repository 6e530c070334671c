//! The two ends of a queue pair that its program has.

use crate::nic::queues::receive::ReceiveQueue;
use crate::nic::queues::send::SendQueue;
use crate::wire::Qpn;

/// A queue pair's ends for its program. They are to be dropped before it is
/// [taken down](crate::nic::Nic::drop_queue_pair).
#[derive(Debug)]
pub struct QueuePairEnds {
    /// Its number, which the peer must be told.
    pub qpn: Qpn,
    /// Where sends and writes are posted.
    pub send: SendQueue,
    /// Where receives are posted.
    pub receive: ReceiveQueue,
}
