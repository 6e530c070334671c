//! A connected queue pair whose requests are futures.

use std::sync::Arc;

use doorbell_core::memory::Buf;
use doorbell_core::nic::{Attachment, Completion, Data, Done, Memory, PostError, WorkRequest};
use doorbell_core::wire::{Imm, Qpn};

use super::message::Message;
use super::operation::Operation;
use super::receive::Receive;
use crate::connect::Connection;
use crate::dispatch::Dispatcher;
use crate::error::{Failed, PostReceiveError};
use crate::nic::Nic;
use crate::work::{RemoteMemory, Send, Write};

/// A connected queue pair whose requests are futures.
///
/// Many tasks may use it at once. A request is posted when its future is first polled, in that
/// order; if the queue is full, the future waits for room. A future that is dropped before it is
/// polled has no effect. A future that is dropped later leaves its request under way, and the
/// request's memory is kept until it completes.
///
/// Messages are received in order, into buffers that were posted in order. So a future of
/// [`recv`](Self::recv) may be dropped at any time, and no message is lost by that.
pub struct QueuePair {
    dispatcher: Arc<Dispatcher>,
    connection: Connection,
}

impl std::fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueuePair")
            .field("qpn", &self.qpn())
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl QueuePair {
    pub(crate) fn new(dispatcher: Arc<Dispatcher>, connection: Connection) -> Self {
        Self { dispatcher, connection }
    }

    /// Returns the queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// Returns the connection, which tells the peer, the state, and the end.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn nic(&self) -> &Nic {
        self.connection.nic()
    }

    /// Carries out a request: any of those in [`work`](crate::work), with any of their options.
    ///
    /// # Errors
    /// Returns an error when the request can't be carried out. The error says why, and has the
    /// request's memory.
    #[inline]
    pub fn perform(&self, request: impl Into<WorkRequest>) -> Operation<'_> {
        let request: WorkRequest = request.into();
        Operation::new(self.nic().engine(), &self.dispatcher, &self.connection, request)
    }

    /// Sends a message into the next buffer that the peer has posted.
    ///
    /// The bytes are sent from where they are, if they are a `Vec<u8>`, a `Bytes`, or anything else
    /// that becomes [`Data`] without a copy, and come back as a buffer. Data without a buffer of
    /// its own, such as `b"hello"`, comes back as an empty one.
    ///
    /// # Errors
    /// Returns an error as [`perform`](Self::perform) does.
    #[inline]
    pub async fn send(&self, data: impl Into<Data>) -> Result<Buf, Failed> {
        let done = self.perform(WorkRequest::send(0, data).awaited()).await?;
        Ok(done.memory.into_buf())
    }

    /// Sends a copy of a few bytes: 64 at most.
    ///
    /// # Errors
    /// Returns an error as [`perform`](Self::perform) does, and when there are more bytes.
    #[inline]
    pub async fn send_inline(&self, bytes: &[u8]) -> Result<(), Failed> {
        self.perform(Send::inline(bytes)?.awaited()).await.map(drop)
    }

    /// Writes to the peer's memory. When the future is ready, the data is there. The bytes come
    /// back as with [`send`](Self::send).
    ///
    /// # Errors
    /// Returns an error as [`perform`](Self::perform) does, and when the data is longer than the
    /// remote memory.
    #[inline]
    pub async fn write(&self, data: impl Into<Data>, to: RemoteMemory) -> Result<Buf, Failed> {
        self.put(data.into(), to, Attachment::Nothing).await
    }

    /// Writes a copy of a few bytes to the peer's memory: 64 at most.
    ///
    /// # Errors
    /// Returns an error as [`write`](Self::write) does, and when there are more bytes.
    #[inline]
    pub async fn write_inline(&self, bytes: &[u8], to: RemoteMemory) -> Result<(), Failed> {
        let written = self.perform(Write::inline(bytes, to)?.awaited()).await;
        written.map(drop).map_err(|failed| failed.asking(to.place(), bytes.len() as u64))
    }

    /// Writes to the peer's memory, and completes a receive of the peer's, by which the peer
    /// notices.
    ///
    /// # Errors
    /// Returns an error as [`write`](Self::write) does.
    #[inline]
    pub async fn write_imm(
        &self,
        data: impl Into<Data>,
        to: RemoteMemory,
        imm: Imm,
    ) -> Result<Buf, Failed> {
        self.put(data.into(), to, Attachment::Imm(imm)).await
    }

    #[inline]
    async fn put(&self, data: Data, to: RemoteMemory, attached: Attachment) -> Result<Buf, Failed> {
        let len = data.len();
        let data = to.check(data)?;
        let request = WorkRequest::write(0, to.address(), to.rkey(), data).awaited();
        let written = self.perform(WorkRequest { attached, ..request }).await;
        Ok(written.map_err(|failed| failed.asking(to.place(), len))?.memory.into_buf())
    }

    /// Reads as much of the peer's memory as `into` has room for. A buffer comes back filled.
    ///
    /// The room of a `Vec<u8>` or a [`Buf`] is its capacity, and not its length. Old content is
    /// replaced.
    ///
    /// # Errors
    /// Returns an error as [`perform`](Self::perform) does, and when there is more room than remote
    /// memory.
    #[inline]
    pub async fn read(&self, into: impl Into<Memory>, from: RemoteMemory) -> Result<Buf, Failed> {
        let memory = from.check_room(into.into())?;
        let len = memory.room();
        let request = WorkRequest::read(0, from.address(), from.rkey(), memory);
        let read = self.perform(request.awaited()).await;
        Ok(read.map_err(|failed| failed.asking(from.place(), len))?.memory.into_buf())
    }

    /// Replaces a word of the peer's memory by `swap` if it equals `compare`. Returns the old
    /// value.
    ///
    /// # Errors
    /// Returns an error as [`perform`](Self::perform) does, and when there is no word of 8 bytes at
    /// that place.
    #[inline]
    pub async fn compare_swap(
        &self,
        word: RemoteMemory,
        compare: u64,
        swap: u64,
    ) -> Result<u64, Failed> {
        word.check_word()?;
        let request =
            WorkRequest::compare_swap(0, word.address(), word.rkey(), compare, swap).awaited();
        self.perform(request).await.map(before).map_err(|failed| failed.asking(word.place(), 8))
    }

    /// Adds to a word of the peer's memory, wrapping around. Returns the old value.
    ///
    /// # Errors
    /// Returns an error as [`compare_swap`](Self::compare_swap) does.
    #[inline]
    pub async fn fetch_add(&self, word: RemoteMemory, add: u64) -> Result<u64, Failed> {
        word.check_word()?;
        let request = WorkRequest::fetch_add(0, word.address(), word.rkey(), add).awaited();
        self.perform(request).await.map(before).map_err(|failed| failed.asking(word.place(), 8))
    }

    /// Posts a buffer for a message: a [`Buf`] or a `Vec<u8>`, in each case its whole capacity.
    ///
    /// # Errors
    /// Returns an error when as many receives as configured are posted, or when receives come from
    /// a shared queue.
    #[inline]
    pub fn post_receive(&self, buffer: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let posted = self.dispatcher.post_receive(buffer.into())?;
        if posted {
            self.nic().engine().ring();
        }
        Ok(())
    }

    /// Waits for the next message. The future may be dropped at any time: the next one gets the
    /// message then.
    ///
    /// # Errors
    /// Returns an error when the connection has ended, and all earlier messages were taken.
    #[inline]
    pub fn receive(&self) -> Receive<'_> {
        Receive::new(self.nic().engine(), &self.dispatcher, &self.connection)
    }

    /// Posts a buffer, and waits for the next message, which comes in a buffer that was posted
    /// earlier, if there was one. It is no error if the receive queue is full: the next message
    /// makes room for the buffer.
    ///
    /// # Errors
    /// Returns an error when receives come from a shared queue, or when the connection has ended,
    /// and all earlier messages were taken.
    #[inline]
    pub async fn recv(&self, buffer: impl Into<Memory>) -> Result<Message, Failed> {
        let held = match self.post_receive(buffer) {
            Ok(()) => return self.receive().await,
            // The receive queue is full: one of its messages will make room for this buffer.
            Err(PostReceiveError { why: PostError::Full { .. }, request }) => request.memory,
            Err(PostReceiveError { why, request }) => {
                return Err(Failed::refused(why, request.memory).because(self.connection.link()));
            }
        };
        let message = self.receive().await?;
        // If other tasks were quicker, enough buffers are posted.
        drop(self.post_receive(held));
        Ok(message)
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.connection.leave(self.dispatcher.take_ends());
    }
}

/// Returns the old value that an atomic operation has found.
fn before(completion: Completion) -> u64 {
    match completion.outcome {
        Ok(Done::Atomic { before }) => before,
        _ => 0,
    }
}
