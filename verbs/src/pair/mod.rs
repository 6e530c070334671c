//! Queue pairs whose requests are futures.

mod operation;

use std::sync::Arc;

use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    self, Attachment, Completion, Data, Done, Memory, Polled, PostError, ReceiveRequest,
    WorkRequest,
};
use doorbell_core::wire::cm::RnrRetryCount;
use doorbell_core::wire::{Imm, Qpn};

pub use operation::{Operation, Receive};

pub(crate) use crate::dispatch::Pair;
pub use crate::link::{Ending, Stand};
pub(crate) use crate::link::{Link, Terms};

use crate::connect::Connection;
use crate::error::{Failed, PostReceiveError};
use crate::memory::{RemoteMemory, Rights};
use crate::nic::Nic;
use crate::shared_receives::SharedReceiveQueue;
use crate::work::{Send, Write};

/// What marks the completions of receives.
pub(crate) const RECEIVE: u64 = 1 << 63;

/// What a queue pair is to be like whose requests are futures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct QueuePairConfig {
    /// Where to take receives from, instead of a queue of its own: see [`share`](Self::share).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub shared_receives: Option<nic::SharedReceiveQueueId>,
    /// How many requests may be outstanding. What is beyond waits.
    pub send_depth: usize,
    /// How many receives may be posted.
    pub receive_depth: usize,
    /// What the peer may do, where the registration allows it, too.
    pub rights: Rights,
    /// The most reads and atomic operations under way at a time, each way.
    pub reads: u8,
    /// How often the peer is to send again what finds no receive posted here, at most 6 times,
    /// before its request fails: [`INFINITE`](RnrRetryCount::INFINITE) is for as long as the
    /// connection stands. It is told when the connection is made in band.
    pub rnr_retries: RnrRetryCount,
}

impl Default for QueuePairConfig {
    /// Queues of 64; the peer may do whatever its keys allow, and is patient without end.
    fn default() -> Self {
        Self {
            shared_receives: None,
            send_depth: 64,
            receive_depth: 64,
            rights: Rights::REMOTE,
            reads: 16,
            rnr_retries: RnrRetryCount::INFINITE,
        }
    }
}

impl QueuePairConfig {
    /// The same with receives from a queue that several share.
    #[must_use]
    pub fn share(self, receives: &SharedReceiveQueue) -> Self {
        Self { shared_receives: Some(receives.id()), ..self }
    }
}

/// A queue pair that is connected, whose requests are futures.
///
/// It may be used by many tasks at once. A request is posted when its future is first polled, in
/// that order; if the queue is full, it waits for room. A future that is dropped before changes
/// nothing; one that is dropped later leaves its request under way, whose memory is kept until it
/// is done.
///
/// Messages are received in order, into buffers that were posted in order: so
/// [`recv`](Self::recv) may be dropped at any time, and no message is lost by it.
pub struct QueuePair {
    pair: Arc<Pair>,
    connection: Connection,
}

/// A message that was received, or a write that the peer told of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The bytes; none of a write, which are where the peer has written them. After them comes the
    /// buffer's room. They [become `Bytes`](Buf::into_bytes) or a `Vec<u8>` without a copy.
    pub data: Buf,
    /// How many bytes were received, or written.
    pub len: u32,
    /// What came with it.
    pub attached: Attachment,
    /// Whether it tells of a write, and has used the buffer up without filling it.
    pub is_write: bool,
}

impl Message {
    /// The immediate that came with it.
    pub fn imm(&self) -> Option<Imm> {
        self.attached.imm()
    }

    pub(crate) fn of(completion: Completion) -> Result<Self, Failed> {
        let Completion { outcome, len, attached, memory, .. } = completion;
        match outcome {
            Ok(done) => {
                let is_write = matches!(done, Done::ReceivedWrite);
                Ok(Self { data: memory.into_buf(), len, attached, is_write })
            }
            Err(why) => Err(Failed::of(why, memory)),
        }
    }
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
    pub(crate) fn new(pair: Arc<Pair>, connection: Connection) -> Self {
        Self { pair, connection }
    }

    /// Its number.
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// Its connection: who the peer is, whether it stands, how it ends.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn nic(&self) -> &Nic {
        self.connection.nic()
    }

    /// Carries a request out: any of those in [`work`](crate::work), with all that can go with it.
    ///
    /// # Errors
    /// When it can't be carried out; the error says why, and brings its memory back.
    #[inline]
    pub fn perform(&self, request: impl Into<WorkRequest>) -> Operation<'_> {
        let request: WorkRequest = request.into();
        Operation::new(self.nic().shared(), &self.pair, &self.connection, request)
    }

    /// Sends a message into the next buffer that the peer has posted.
    ///
    /// The bytes are sent from where they lie, if they are a `Vec<u8>`, a `Bytes`, or whatever else
    /// is made [`Data`] without a copy, and come back as a buffer. Data without a buffer of its
    /// own, such as `b"hello"`, comes back as an empty one.
    ///
    /// # Errors
    /// As [`perform`](Self::perform).
    #[inline]
    pub async fn send(&self, data: impl Into<Data>) -> Result<Buf, Failed> {
        let done = self.perform(WorkRequest::send(0, data).awaited()).await?;
        Ok(done.memory.into_buf())
    }

    /// Sends a copy of a few bytes: 64 at most.
    ///
    /// # Errors
    /// As [`perform`](Self::perform), and when there are more.
    #[inline]
    pub async fn send_inline(&self, bytes: &[u8]) -> Result<(), Failed> {
        self.perform(Send::inline(bytes)?.awaited()).await.map(drop)
    }

    /// Writes to the peer's memory: when this is done, it is there. The bytes come back as with
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// As [`perform`](Self::perform), and when there is more data than remote memory.
    #[inline]
    pub async fn write(&self, data: impl Into<Data>, to: RemoteMemory) -> Result<Buf, Failed> {
        self.put(data.into(), to, Attachment::Nothing).await
    }

    /// Writes a copy of a few bytes to the peer's memory: 64 at most.
    ///
    /// # Errors
    /// As [`write`](Self::write), and when there are more.
    #[inline]
    pub async fn write_inline(&self, bytes: &[u8], to: RemoteMemory) -> Result<(), Failed> {
        self.perform(Write::inline(bytes, to)?.awaited()).await.map(drop)
    }

    /// Writes to the peer's memory, and completes a receive of the peer's, which tells it so.
    ///
    /// # Errors
    /// As [`write`](Self::write).
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
        let data = to.check(data)?;
        let request = WorkRequest::write(0, to.address(), to.rkey(), data).awaited();
        Ok(self.perform(WorkRequest { attached, ..request }).await?.memory.into_buf())
    }

    /// Reads the peer's memory, as much as `into` has room for; a buffer comes back filled.
    ///
    /// The room of a `Vec<u8>`, as of a [`Buf`], is its capacity, and not its length: what it held
    /// is replaced.
    ///
    /// # Errors
    /// As [`perform`](Self::perform), and when there is more room than remote memory.
    #[inline]
    pub async fn read(&self, into: impl Into<Memory>, from: RemoteMemory) -> Result<Buf, Failed> {
        let memory = from.check_room(into.into())?;
        let request = WorkRequest::read(0, from.address(), from.rkey(), memory);
        Ok(self.perform(request.awaited()).await?.memory.into_buf())
    }

    /// Replaces a word of the peer's with `swap` if it is `compare`. What it was comes back.
    ///
    /// # Errors
    /// As [`perform`](Self::perform), and when there is no word of 8 bytes at that place.
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
        self.perform(request).await.map(before)
    }

    /// Adds to a word of the peer's, wrapping around. What it was comes back.
    ///
    /// # Errors
    /// As [`compare_swap`](Self::compare_swap).
    #[inline]
    pub async fn fetch_add(&self, word: RemoteMemory, add: u64) -> Result<u64, Failed> {
        word.check_word()?;
        let request = WorkRequest::fetch_add(0, word.address(), word.rkey(), add).awaited();
        self.perform(request).await.map(before)
    }

    /// Posts a buffer for a message to come: a [`Buf`], or a `Vec<u8>`, of either the whole
    /// capacity.
    ///
    /// # Errors
    /// When as many as configured are posted, or receives come from a shared queue.
    #[inline]
    pub fn post_receive(&self, buffer: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let posted = self.pair.post_receive(buffer.into())?;
        if posted {
            self.nic().shared().ring();
        }
        Ok(())
    }

    /// The next message. It may be dropped at any time: the next one gets the message then.
    ///
    /// # Errors
    /// When the connection is over, and all that came before was received.
    #[inline]
    pub fn receive(&self) -> Receive<'_> {
        Receive::new(self.nic().shared(), &self.pair, &self.connection)
    }

    /// Posts a buffer, and awaits the next message, which is in a buffer that was posted before, if
    /// there was one. If as many buffers are posted as may be, that is no error here: the next
    /// message makes room for this one.
    ///
    /// # Errors
    /// When receives come from a shared queue, or the connection is over, and all that came before
    /// was received.
    #[inline]
    pub async fn recv(&self, buffer: impl Into<Memory>) -> Result<Message, Failed> {
        let held = match self.post_receive(buffer) {
            Ok(()) => return self.receive().await,
            // As many buffers as may be wait for messages: one of them makes room for this.
            Err(PostReceiveError { why: PostError::Full { .. }, request }) => request.memory,
            Err(PostReceiveError { why, request }) => {
                return Err(Failed::refused(why, request.memory).because(&self.connection));
            }
        };
        let message = self.receive().await?;
        // If others were quicker, there are enough.
        drop(self.post_receive(held));
        Ok(message)
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.connection.leave(self.pair.take_ends());
    }
}

/// What an atomic operation found.
fn before(completion: Completion) -> u64 {
    match completion.outcome {
        Ok(Done::Atomic { before }) => before,
        _ => 0,
    }
}

/// Where a completion in its queue goes on: its memory is taken out of it.
pub(crate) fn taken(done: &mut Polled<'_>) -> Completion {
    Completion {
        id: done.id,
        qpn: done.qpn,
        outcome: done.outcome,
        len: done.len,
        attached: done.attached,
        memory: std::mem::take(&mut done.memory),
    }
}

/// A receive of a queue pair whose requests are futures.
pub(crate) fn receive(memory: Memory) -> ReceiveRequest {
    ReceiveRequest { id: RECEIVE, memory }
}
