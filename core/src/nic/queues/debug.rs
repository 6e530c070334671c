//! Debug output of queues: the queue pair, how full the queue is, and its state; never what is in
//! it.

use std::fmt;

use crate::nic::queues::completion_queue::{CompletionGauge, CompletionQueue};
use crate::nic::queues::receive_queue::ReceiveQueue;
use crate::nic::queues::send_queue::SendQueue;
use crate::nic::queues::shared_receive_queue::SharedReceiveQueue;
use crate::nic::queues::shared_with_program::SharedWithProgram;

/// Shows an end of a queue pair.
fn show(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    shared: &SharedWithProgram,
    room: usize,
    depth: usize,
) -> fmt::Result {
    f.debug_struct(name)
        .field("qpn", &shared.qpn)
        .field("state", &shared.state())
        .field("room", &room)
        .field("depth", &depth)
        .finish()
}

impl fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "SendQueue", &self.shared, self.ring.room(), self.ring.depth())
    }
}

impl fmt::Debug for ReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "ReceiveQueue", &self.shared, self.ring.room(), self.ring.depth())
    }
}

impl fmt::Debug for SharedReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceiveQueue")
            .field("room", &self.ring.room())
            .field("depth", &self.ring.depth())
            .finish()
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue")
            .field("waiting", &self.len())
            .field("taken", &self.taken())
            .finish()
    }
}

impl fmt::Debug for CompletionGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionGauge").field("came", &self.came()).finish()
    }
}
