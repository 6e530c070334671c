//! The two ends of a queue pair that its program holds.

use crate::nic::queues::receive_queue::ReceiveQueue;
use crate::nic::queues::send_queue::SendQueue;
use crate::wire::Qpn;

/// A queue pair's two ends for its program. They are to be dropped before the queue pair is [taken
/// down](crate::nic::Nic::drop_queue_pair).
#[derive(Debug)]
pub struct QueuePairEnds {
    /// The number of the queue pair, which the peer must be told.
    pub qpn: Qpn,
    /// The queue that requests are posted to.
    pub send: SendQueue,
    /// The queue that receives are posted to.
    pub receive: ReceiveQueue,
}
