//! The send queue of a queue pair.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::nic::{self, Copied, Refused, WorkRequest};
use doorbell_core::wire::Qpn;

use crate::adapter::Adapter;
use crate::connect::QueuePairOwner;
use crate::control::{ControlOp, LingeringQueue};
use crate::nic::Nic;
use crate::progress::ProgressEngine;

/// The send queue of a queue pair, to which requests are posted.
pub struct SendQueue {
    queue: nic::SendQueue,
    nic: Nic,
    /// The owner of the queue pair, which is taken down after both queues.
    _keeps: Arc<QueuePairOwner>,
}

impl SendQueue {
    /// Makes the program's end of the queue, which keeps the queue pair until it is dropped.
    pub(super) fn new(queue: nic::SendQueue, nic: Nic, keeps: Arc<QueuePairOwner>) -> Self {
        Self { queue, nic, _keeps: keeps }
    }
}

impl fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

impl SendQueue {
    /// Returns the number of the queue pair.
    pub fn qpn(&self) -> Qpn {
        self.queue.qpn()
    }

    /// Returns how many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Posts a request. This thread sends it, unless another thread runs the NIC and does.
    ///
    /// # Errors
    /// Returns the request when the queue is full, the connection has ended, or the request is
    /// invalid.
    #[inline]
    pub fn post(&mut self, request: impl Into<WorkRequest>) -> Result<(), Refused<WorkRequest>> {
        let engine = self.nic.engine();
        let held = engine.enter();
        let posted = self.queue.post(request.into());
        match held {
            Some(mut adapter) => {
                if posted.is_ok() {
                    adapter.posted(&self.queue);
                }
                engine.release(adapter);
            }
            None if posted.is_ok() => {
                self.queue.ring();
                engine.ring();
            }
            None => {}
        }
        posted
    }

    /// Posts several requests and rings the doorbell once, when the returned batch is dropped.
    ///
    /// ```no_run
    /// # use doorbell_verbs::work::Send;
    /// # use doorbell_verbs::SendQueue;
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

    /// Puts a request into the queue without ringing the doorbell. The request stays there until
    /// [`ring`](Self::ring) or another [`post`](Self::post), for a program that knows that more
    /// requests follow.
    ///
    /// # Errors
    /// Returns an error as [`post`](Self::post) does.
    #[inline]
    pub fn put(&mut self, request: impl Into<WorkRequest>) -> Result<(), Refused<WorkRequest>> {
        self.queue.post(request.into())
    }

    /// Rings the doorbell for requests that were [put](Self::put) into the queue.
    #[inline]
    pub fn ring(&mut self) {
        self.queue.ring();
        self.nic.engine().ring();
    }

    /// Sends a message without keeping a copy: see
    /// [`HeldNic::send_copied`](crate::floor::HeldNic::send_copied).
    #[inline]
    pub(crate) fn send_copied(&mut self, message: &Copied<'_>) -> bool {
        let engine = self.nic.engine();
        let Some(mut adapter) = engine.enter() else { return false };
        let sent = adapter.send_copied(&mut self.queue, message);
        // No turn was taken, so nothing is owed except to requests for which this made room, and of
        // those the NIC knows.
        engine.release_soon(adapter);
        sent
    }

    /// Drops the queue, whose requests and those of `rest` are still carried out, for a time of at
    /// most `within`. Until then the connection stands. If the receive queue is dropped, too, the
    /// connection ends then, with up to 220 bytes of private data for the peer. For layers of this
    /// workspace that end, and whose last messages are to arrive.
    #[doc(hidden)]
    pub fn linger(self, rest: VecDeque<WorkRequest>, within: Duration, private: &[u8]) {
        debug_assert!(private.len() <= 220, "longer data is not sent, nor is the end");
        let Self { queue, nic, _keeps: keeps } = self;
        let (link, private) = (keeps.connection.link().clone(), private.into());
        let left = LingeringQueue { link, queue, rest, within, private };
        nic.engine().submit(ControlOp::Linger(left));
        // The queue pair is dropped behind that.
        drop(keeps);
    }

    pub(crate) fn nic(&self) -> &Nic {
        &self.nic
    }

    #[inline]
    pub(crate) fn raw(&mut self) -> &mut nic::SendQueue {
        &mut self.queue
    }

    /// Returns the progress engine of the queue's NIC.
    #[inline]
    pub(crate) fn engine(&self) -> &ProgressEngine {
        self.nic.engine()
    }

    /// Posts a request through a NIC that this thread holds: the request leaves at once.
    #[inline]
    pub(crate) fn post_with(
        &mut self,
        adapter: &mut Box<dyn Adapter>,
        request: WorkRequest,
    ) -> Result<(), Refused<WorkRequest>> {
        self.queue.post(request)?;
        adapter.posted(&self.queue);
        Ok(())
    }
}

/// A batch of requests with one ring of the doorbell. See [`SendQueue::batch`].
#[derive(Debug)]
pub struct Batch<'q> {
    queue: &'q mut SendQueue,
    any: bool,
}

impl Batch<'_> {
    /// Adds a request to the batch.
    ///
    /// # Errors
    /// Returns an error as [`SendQueue::post`] does.
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
