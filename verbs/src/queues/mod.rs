//! Queue pairs whose program posts to their queues, and reads a completion queue.

pub(crate) mod completions;
pub(crate) mod datagrams;
pub(crate) mod shared_receives;

use std::fmt;
use std::sync::Arc;

use doorbell_core::nic::{self, Copied, Memory, ReceiveRequest, Refused, WorkRequest};
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::RnrRetryCount;

use crate::completions::CompletionQueue;
use crate::connect::Connection;
use crate::memory::Rights;
use crate::nic::Nic;
use crate::progress::Shared;
use crate::shared_receives::SharedReceiveQueue;

/// What a queue pair is to be like whose completions go to completion queues.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueuesConfig {
    /// Whether it has a connection without answers: a message or a write arrives whole, or is lost,
    /// and is complete when it is sent. See [`unreliable`](Self::unreliable).
    pub unreliable: bool,
    /// Where requests complete.
    pub send_completions: nic::CompletionQueueId,
    /// Where receives complete: see [`receives_to`](Self::receives_to).
    pub receive_completions: nic::CompletionQueueId,
    /// Where to take receives from, instead of a queue of its own: see [`share`](Self::share).
    pub shared_receives: Option<nic::SharedReceiveQueueId>,
    /// How many requests may be outstanding.
    pub send_depth: usize,
    /// How many receives may be posted.
    pub receive_depth: usize,
    /// What the peer may do, where the registration allows it, too.
    pub rights: Rights,
    /// The most reads and atomic operations under way at a time, each way.
    pub reads: u8,
    /// How often the peer is to send again what finds no receive posted here: see
    /// [`QueuePairConfig::rnr_retries`](crate::QueuePairConfig::rnr_retries).
    pub rnr_retries: RnrRetryCount,
}

impl QueuesConfig {
    /// Queues of 64, all of whose completions go to one queue; the peer may do whatever its keys
    /// allow, and is patient without end.
    pub fn new(completions: &CompletionQueue) -> Self {
        Self {
            unreliable: false,
            send_completions: completions.id(),
            receive_completions: completions.id(),
            shared_receives: None,
            send_depth: 64,
            receive_depth: 64,
            rights: Rights::REMOTE,
            reads: 16,
            rnr_retries: RnrRetryCount::INFINITE,
        }
    }

    /// The same without answers: sends and writes only. Such a queue pair is connected by
    /// [exchange](crate::Unconnected::exchange).
    #[must_use]
    pub fn unreliable(self) -> Self {
        Self { unreliable: true, ..self }
    }

    /// The same with the completions of receives in a queue of their own.
    #[must_use]
    pub fn receives_to(self, completions: &CompletionQueue) -> Self {
        Self { receive_completions: completions.id(), ..self }
    }

    /// The same with receives from a shared queue, whose completions go to the queue that it was
    /// made with.
    #[must_use]
    pub fn share(self, receives: &SharedReceiveQueue) -> Self {
        let receive_completions = receives.completions();
        Self { shared_receives: Some(receives.id()), receive_completions, ..self }
    }
}

/// The two queues of a queue pair that is connected, and its connection.
///
/// Each may go to a task or thread of its own. When all are dropped, the queue pair is taken down.
#[derive(Debug)]
pub struct Queues {
    /// Where requests are posted.
    pub send: SendQueue,
    /// Where receives are posted.
    pub receive: ReceiveQueue,
    /// The connection.
    pub connection: Connection,
}

/// A queue of requests to the peer.
pub struct SendQueue {
    queue: nic::SendQueue,
    nic: Nic,
    /// The queue pair goes when the last of its parts does.
    _keeps: Arc<Ends>,
}

/// A queue of receives.
pub struct ReceiveQueue {
    queue: nic::ReceiveQueue,
    keeps: Arc<Ends>,
}

/// What takes a queue pair down when it is dropped: after its two queues, which are dropped first.
pub(crate) struct Ends {
    pub connection: Connection,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.connection.leave(Box::new(()));
    }
}

impl Queues {
    pub(crate) fn new(ends: nic::QueuePairEnds, connection: Connection) -> Self {
        let keeps = Arc::new(Ends { connection: connection.clone() });
        let nic = connection.nic().clone();
        Self {
            send: SendQueue { queue: ends.send, nic, _keeps: keeps.clone() },
            receive: ReceiveQueue { queue: ends.receive, keeps },
            connection,
        }
    }
}

impl fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

impl fmt::Debug for ReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

impl SendQueue {
    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.queue.qpn()
    }

    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Posts a request, and has it sent: by this thread, if nobody else runs the NIC.
    ///
    /// # Errors
    /// When the queue is full, or the connection over, or the request none that could be. It comes
    /// back.
    #[inline]
    pub fn post(&mut self, request: impl Into<WorkRequest>) -> Result<(), Refused<WorkRequest>> {
        let shared = self.nic.shared();
        let mut machine = shared.enter();
        let posted = shared.post(machine.as_deref_mut(), &mut self.queue, request.into());
        if let Some(machine) = machine {
            shared.release(machine);
        }
        posted
    }

    /// Posts several requests with one ring of the doorbell, when what is returned is dropped.
    ///
    /// ```no_run
    /// # use doorbell::verbs::work::Send;
    /// # use doorbell::verbs::SendQueue;
    /// # fn posts(queue: &mut SendQueue) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut batch = queue.batch();
    /// for number in 0..10_u8 {
    ///     batch.post(Send::inline(&[number])?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn batch(&mut self) -> Batch<'_> {
        Batch { queue: self, any: false }
    }

    /// Puts a request into the queue, where it stays until the doorbell is [rung](Self::ring), by
    /// this or by another [post](Self::post): for who knows that more will follow.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    #[inline]
    pub fn put(&mut self, request: impl Into<WorkRequest>) -> Result<(), Refused<WorkRequest>> {
        self.queue.post(request.into())
    }

    /// Rings the doorbell for what was [put](Self::put) into the queue.
    #[inline]
    pub fn ring(&mut self) {
        self.queue.ring();
        self.nic.shared().ring();
    }

    /// Sends a message of which nothing is kept: see
    /// [`AtHand::send_copied`](crate::floor::AtHand::send_copied).
    #[inline]
    pub(crate) fn send_copied(&mut self, message: &Copied<'_>) -> bool {
        let shared = self.nic.shared();
        let Some(mut machine) = shared.enter() else { return false };
        let sent = machine.send_copied(&mut self.queue, message);
        // No turn was taken, and so nothing is owed but what has made room, of which the NIC knows.
        shared.release_soon(machine);
        sent
    }

    pub(crate) fn nic(&self) -> &Nic {
        &self.nic
    }

    #[inline]
    pub(crate) fn raw(&mut self) -> &mut nic::SendQueue {
        &mut self.queue
    }

    #[inline]
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        std::ptr::eq(Arc::as_ptr(self.nic.shared()), shared)
    }
}

/// Requests that are posted together. See [`SendQueue::batch`].
#[derive(Debug)]
pub struct Batch<'q> {
    queue: &'q mut SendQueue,
    any: bool,
}

impl Batch<'_> {
    /// Adds a request.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post(&mut self, request: impl Into<WorkRequest>) -> Result<(), Refused<WorkRequest>> {
        self.queue.put(request)?;
        self.any = true;
        Ok(())
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.any {
            self.queue.ring();
        }
    }
}

impl ReceiveQueue {
    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.queue.qpn()
    }

    /// How many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Posts a place for a message, and what names it in its completion.
    ///
    /// # Errors
    /// When the queue is full, or receives come from a shared queue. The receive comes back.
    #[inline]
    pub fn post(
        &mut self,
        id: u64,
        memory: impl Into<Memory>,
    ) -> Result<(), Refused<ReceiveRequest>> {
        self.queue.post(ReceiveRequest { id, memory: memory.into() })?;
        if self.queue.is_flushed() {
            self.keeps.connection.nic().shared().ring();
        }
        Ok(())
    }
}
