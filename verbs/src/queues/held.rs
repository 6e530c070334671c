//! Posting while the current thread holds the NIC.

use doorbell_core::nic::{Copied, Refused, WorkRequest};

use super::send::SendQueue;
use crate::progress::{HeldNic, NicGuard};

impl HeldNic<'_> {
    /// Posts a request, which leaves at once if the thread holds the NIC.
    ///
    /// # Errors
    /// Returns an error as [`SendQueue::post`] does.
    #[inline]
    pub fn post(
        &mut self,
        queue: &mut SendQueue,
        request: impl Into<WorkRequest>,
    ) -> Result<(), Refused<WorkRequest>> {
        match self.of_nic(queue.engine()) {
            Some(adapter) => queue.post_with(adapter, request.into()),
            None => queue.post(request),
        }
    }

    /// Sends a message without keeping a copy. On a [lossless](crate::Capabilities::lossless)
    /// device, the message is copied straight to where it leaves, and no memory is lent to the NIC.
    /// Returns whether the message was sent. It is not sent if the NIC can't be had at once, if
    /// other requests wait on the connection, or if the message needs more than one packet: then
    /// [post](Self::post) it.
    ///
    /// The peer must have a receive for the message, as a program knows that counts credits. The
    /// message can't be repeated, so the connection ends if there is none. In dedicated mode,
    /// nothing is copied.
    ///
    /// ```
    /// # use doorbell_verbs::work::Send;
    /// # use doorbell_verbs::floor::{HeldNic, Copied};
    /// # use doorbell_verbs::{Refused, SendQueue, WorkRequest, Buf};
    /// /// Sends a header, and bytes behind it.
    /// fn send(
    ///     nic: &mut HeldNic<'_>,
    ///     queue: &mut SendQueue,
    ///     parts: [&[u8]; 2],
    /// ) -> Result<(), Refused<WorkRequest>> {
    ///     if nic.send_copied(queue, &Copied { imm: None, bytes: parts, signalled: false }) {
    ///         return Ok(());
    ///     }
    ///     nic.post(queue, Send::new(Buf::from(parts.concat())).unsignalled())
    /// }
    /// ```
    #[inline]
    pub fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool {
        match self.of_nic(queue.engine()) {
            Some(adapter) => adapter.send_copied(queue.raw(), message),
            None => queue.send_copied(message),
        }
    }

    /// Completes the first `count` requests that were posted to a queue since it was connected. A
    /// message of the peer's program proves that they have arrived, so they need no
    /// acknowledgement. Without the NIC, the call has no effect, since it is only an optimisation.
    ///
    /// The proof must be sound: requests that the peer did not receive would not be repeated.
    #[inline]
    pub fn acknowledged_by_program(&mut self, queue: &mut SendQueue, count: u32) {
        if let Some(adapter) = self.of_nic(queue.engine()) {
            adapter.acknowledged_by_program(queue.raw(), count);
        }
    }
}

impl NicGuard<'_> {
    /// Posts a request, which leaves before all other work of the NIC.
    ///
    /// # Errors
    /// Returns an error as [`SendQueue::post`] does.
    #[inline]
    pub fn post(
        &mut self,
        queue: &mut SendQueue,
        request: impl Into<WorkRequest>,
    ) -> Result<(), Refused<WorkRequest>> {
        self.held().post(queue, request)
    }
}
