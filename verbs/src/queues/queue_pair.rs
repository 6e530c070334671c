//! Queue pairs whose program posts to their queues and reads a completion queue.

use std::any::Any;
use std::sync::Arc;

use doorbell_core::nic::{
    self, Memory, QueuePairEnds, ReceiveRequest, Refused, ResourceError, Transport,
};

use super::config::QueuesConfig;
use super::receive::ReceiveQueue;
use super::send::SendQueue;
use crate::connect::{Connection, Kind, QueuePairOwner, Unconnected, sealed};
use crate::link::{Link, Terms};
use crate::nic::Domain;

/// The two queues of a connected queue pair, and its connection.
///
/// Each queue may go to a task or thread of its own. When both queues are dropped, the queue pair
/// is taken down.
#[derive(Debug)]
pub struct Queues {
    /// The queue of requests.
    pub send: SendQueue,
    /// The queue of receives.
    pub receive: ReceiveQueue,
    /// The connection to the peer.
    pub connection: Connection,
}

impl Queues {
    pub(crate) fn new(ends: nic::QueuePairEnds, connection: Connection) -> Self {
        let keeps = Arc::new(QueuePairOwner { connection: connection.clone() });
        let nic = connection.nic().clone();
        Self {
            send: SendQueue::new(ends.send, nic, keeps.clone()),
            receive: ReceiveQueue::new(ends.receive, keeps),
            connection,
        }
    }
}

impl sealed::Sealed for Queues {}

impl Kind for Queues {
    type Ends = QueuePairEnds;

    fn join(ends: QueuePairEnds, connection: Connection) -> Self {
        Self::new(ends, connection)
    }

    fn ends(ends: QueuePairEnds) -> Box<dyn Any + Send> {
        Box::new(ends)
    }
}

impl Unconnected<Queues> {
    /// Posts a receive, before the peer can send any message.
    ///
    /// # Errors
    /// Returns an error as [`ReceiveQueue::post`](crate::ReceiveQueue::post) does.
    pub fn post_receive(
        &mut self,
        id: u64,
        memory: impl Into<Memory>,
    ) -> Result<(), Refused<ReceiveRequest>> {
        let ends = self.ends.as_mut().expect("connecting consumes this value");
        ends.receive.post(ReceiveRequest { id, memory: memory.into() })
    }
}

impl Domain {
    /// Makes a queue pair whose program posts to its queues and reads a completion queue.
    ///
    /// # Errors
    /// Returns an error when there are as many queue pairs as configured; when a completion queue
    /// is too small for one more, or belongs to another NIC; or when the shared receive queue was
    /// made for futures.
    pub fn queues(&self, config: &QueuesConfig) -> Result<Unconnected<Queues>, ResourceError> {
        let transport = match config.unreliable {
            true => Transport::Unreliable,
            false => Transport::Reliable,
        };
        let core = nic::QueuePairConfig {
            transport,
            receive_completions: config.receive_completions,
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            shared_receives: config.shared_receives,
            ..nic::QueuePairConfig::new(self.id(), config.send_completions)
        };
        let &QueuesConfig { rights, shared_receives, reads, rnr_retries, .. } = config;
        let terms = Terms::new(rights, shared_receives, reads, rnr_retries);
        self.nic().engine().with(|adapter| {
            let control = adapter.control();
            if let Some(queue) = config.shared_receives
                && config.receive_completions == control.completions.0
            {
                return Err(ResourceError::OtherShared(queue));
            }
            let ends = control.nic.queue_pair(&core)?;
            let mut link = Link::new(ends.qpn, terms);
            link.unreliable = config.unreliable;
            let connection = Connection::of(self.nic().clone(), control, &ends, link)?;
            Ok(Unconnected::new(ends, connection))
        })
    }
}
