//! A link: both directions of one stream, and what arrives for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_verbs::{Attachment, Buf, Connection, ConnectionState, Queues, SendQueue};

use super::common::Common;
use super::inbound::Inbound;
use super::outbound::Outbound;
use crate::error::Over;
use crate::shared::{BESIDE, Shared};
use crate::wire::{Hello, Signal, Violation};

/// How long a peer without room waits for word of less than half a window.
const A_MOMENT: Duration = Duration::from_millis(1);

/// The state of a stream, from the making of its queue pair until the queue pair is dropped.
pub(crate) struct Link {
    pub common: Common,
    /// How many completions had ever come when the queue pair was made. None of those belongs to
    /// the link, whatever their queue pair's number.
    pub since: usize,
    pub inbound: Inbound,
    pub outbound: Outbound,
    /// Whether a task is about to tell the peer what was read.
    tells_soon: AtomicBool,
}

impl Link {
    /// Makes a link for a connection that is not established yet. The caller sees to the receives
    /// that are [promised](Self::promised).
    pub fn new(shared: &Arc<Shared>, connection: Connection, since: usize) -> Self {
        let (inbound, outbound) = (Inbound::default(), Outbound::default());
        let tells_soon = AtomicBool::new(false);
        Self { common: Common::new(shared, connection), since, inbound, outbound, tells_soon }
    }

    /// Opens the link when its connection with `peer` is established and the peer's hello has come.
    pub fn open(&self, queues: Queues, hello: Hello, peer: String) {
        self.common.set_peer(peer);
        let Queues { send, .. } = queues;
        self.outbound.open(send, self.common.shared.config.segment, hello);
        // The connection may be over already; whoever was told of that found no queue to end.
        if let ConnectionState::Ended(ending) = self.common.connection.state() {
            self.outbound.ends(ending.into());
        }
    }

    /// Returns whether the link was opened, so that it carries a stream.
    pub fn is_open(&self) -> bool {
        self.common.is_open()
    }

    /// Takes in a message from the peer. Returns whether a task was woken.
    pub fn received(self: &Arc<Self>, buffer: Buf, attached: Attachment) -> bool {
        let taken = match attached {
            Attachment::Nothing => self.take_in(buffer, Signal::default()),
            Attachment::Imm(imm) => self.take_in(buffer, Signal::parse(imm)),
            Attachment::Invalidate(_) | Attachment::Metadata(_) => Err(Violation::NoSend),
        };
        taken.unwrap_or_else(|violation| self.violates(violation))
    }

    /// Takes in a message and what it signals, if the peer may send both.
    fn take_in(
        self: &Arc<Self>,
        buffer: Buf,
        Signal { read, end }: Signal,
    ) -> Result<bool, Violation> {
        let mut woke = false;
        if buffer.is_empty() && read == 0 && !end {
            return Err(Violation::Empty);
        }
        if read > 0 {
            woke |= self.outbound.granted(read)?;
        }
        if buffer.is_empty() {
            self.common.shared.buffers.give(buffer);
        } else {
            woke |= self.take_bytes(buffer)?;
        }
        if end {
            woke |= self.inbound.ends()?;
        }
        Ok(woke)
    }

    /// Breaks the stream off, because the peer broke the rules. Returns whether a task was woken.
    #[cold]
    pub fn violates(&self, violation: Violation) -> bool {
        tracing::debug!(peer = self.common.peer(), %violation, "a stream is broken off");
        let over = Over::Violated(violation);
        let woke = self.outbound.ends(over.clone()) | self.inbound.is_over(over);
        let connection = self.common.connection.clone();
        self.common.shared.runtime.spawn(async move { connection.disconnect(&[]).await });
        woke
    }

    /// Takes in the bytes of a message. If the program has dropped the stream, they are dropped,
    /// and count as unread, so that the peer may send no more than the window.
    fn take_bytes(self: &Arc<Self>, buffer: Buf) -> Result<bool, Violation> {
        let Common { shared, window, question, .. } = &self.common;
        question.answer();
        let (len, segment) = (buffer.len(), shared.config.segment);
        let before = window.receive(len)?;
        // No more than the window, which `receive` has checked.
        let after = before + len as u32;
        shared.buffers.release(window.messages(before, segment) - window.messages(after, segment));
        let (woke, free) = self.inbound.put(buffer)?;
        free.into_iter().for_each(|buffer| shared.buffers.give(buffer));
        self.tell_soon();
        Ok(woke)
    }

    /// Notes that the program has read so many bytes. The peer is told of them together with
    /// others.
    #[inline]
    pub fn has_read(self: &Arc<Self>, len: usize) {
        let Common { shared, window, .. } = &self.common;
        let (before, worth_a_message) = window.read(len);
        let (after, segment) = (before - len as u32, shared.config.segment);
        let more = window.messages(after, segment) - window.messages(before, segment);
        if more > 0 {
            shared.buffers.promise(more);
        }
        if worth_a_message {
            self.outbound.pump(&self.common);
        }
        self.tell_soon();
    }

    /// Sees to it that the peer is told of bytes that were read, if it has no room to send more.
    /// While the program goes on to read, the peer is told of half a window; if the program stops,
    /// of less, a moment later.
    #[inline]
    fn tell_soon(self: &Arc<Self>) {
        if self.common.window.keeps_peer_waiting() && !self.tells_soon.swap(true, Ordering::SeqCst)
        {
            let link = self.clone();
            self.common.shared.runtime.spawn(async move {
                tokio::time::sleep(A_MOMENT).await;
                link.tells_soon.store(false, Ordering::SeqCst);
                if !link.outbound.tell(&link.common) {
                    link.tell_soon();
                }
            });
        }
    }

    /// Takes back a buffer whose bytes were read.
    pub fn give(&self, buffer: Buf) {
        self.common.shared.buffers.give(buffer);
    }

    /// Notes that the connection is over: nothing can be sent any more. Messages that have come can
    /// still be read. Returns whether a task was woken.
    pub fn ended(&self, over: Over) -> bool {
        self.outbound.ends(over)
    }

    /// Ends both directions of the stream, because the runtime of the endpoint's tasks has ended.
    #[cold]
    pub fn runtime_ended(&self) {
        self.outbound.ends(Over::RuntimeEnded);
        self.inbound.is_over(Over::RuntimeEnded);
        self.common.set_drained();
    }

    /// Notes that all completions of the connection were handled after its end. Returns whether a
    /// task was woken.
    pub fn drained(&self) -> bool {
        self.common.set_drained();
        let over = self.common.over();
        self.outbound.ends(over.clone()) | self.inbound.is_over(over)
    }

    /// Drops unread bytes, because the program has dropped the stream.
    pub fn close(&self) {
        for buffer in self.inbound.close() {
            self.common.shared.buffers.give(buffer);
        }
    }

    /// Returns how many receives are promised for what the peer may still send.
    pub fn promised(&self) -> usize {
        let Common { shared, window, .. } = &self.common;
        window.messages(window.unread(), shared.config.segment) + BESIDE
    }

    /// Takes the send queue out of the link. When the queue is dropped, so is the queue pair.
    pub fn take_queue(&self) -> Option<SendQueue> {
        self.outbound.take_queue()
    }
}
