//! A link: both directions of one stream, and what arrives for them.

use std::sync::Arc;

use doorbell_verbs::{Attachment, Buf, Connection, ConnectionState, Queues, SendQueue};

use super::common::Common;
use super::inbound::Inbound;
use super::outbound::Outbound;
use crate::error::Over;
use crate::shared::{FOR_SIGNALS, Shared};
use crate::wire::{Hello, Signal, Violation};

/// The state of a stream, from the making of its queue pair until the queue pair is dropped.
pub(crate) struct Link {
    pub common: Common,
    /// How many completions had ever come when the queue pair was made. None of those belongs to
    /// the link, whatever their queue pair's number.
    pub since: usize,
    pub inbound: Inbound,
    pub outbound: Outbound,
}

impl Link {
    /// Makes a link for a connection that is not established yet. Receives for the whole window
    /// must have been promised before.
    pub fn new(shared: &Arc<Shared>, connection: Connection, since: usize) -> Self {
        let (inbound, outbound) = (Inbound::default(), Outbound::default());
        Self { common: Common::new(shared, connection), since, inbound, outbound }
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

    /// Takes in a message from the peer. Returns whether a task was woken.
    pub fn received(&self, buffer: Buf, attached: Attachment) -> bool {
        let taken = match attached {
            Attachment::Nothing => self.take_in(buffer, None),
            Attachment::Imm(imm) => match Signal::parse(imm) {
                Some(signal) => self.take_in(buffer, Some(signal)),
                None => Err(Violation::Signal(imm.0)),
            },
            Attachment::Invalidate(_) | Attachment::Metadata(_) => Err(Violation::NoSend),
        };
        taken.unwrap_or_else(|violation| self.violates(violation))
    }

    /// Takes in a message and what it signals, if the peer may send both.
    fn take_in(&self, buffer: Buf, signal: Option<Signal>) -> Result<bool, Violation> {
        let buffers = &self.common.shared.buffers;
        let mut woke = false;
        let Signal { credits, end } = signal.unwrap_or_default();
        if buffer.is_empty() && credits == 0 && !end {
            return Err(Violation::Empty);
        }
        if credits > 0 {
            woke |= self.outbound.granted(credits)?;
        }
        if !buffer.is_empty() {
            self.common.question.answer();
            if !self.common.credits.spend() {
                return Err(Violation::Overrun);
            }
            buffers.release(1);
            match self.inbound.put(buffer)? {
                Ok(woken) => woke |= woken,
                Err(unread) => self.has_read(unread),
            }
        } else {
            buffers.give(buffer);
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

    /// Takes back the buffer of a message that was read completely. The credit of the message goes
    /// back to the peer together with others.
    pub fn has_read(&self, buffer: Buf) {
        let buffers = &self.common.shared.buffers;
        buffers.give(buffer);
        if self.inbound.is_closed() {
            // Nobody reads any more, so the peer gets no credit to send with.
            return;
        }
        buffers.promise(1);
        if self.common.credits.owe() {
            self.outbound.pump(&self.common);
        }
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

    /// Drops unread messages, because the program has dropped the stream.
    pub fn close(&self) {
        for buffer in self.inbound.close() {
            self.common.shared.buffers.give(buffer);
        }
    }

    /// Returns how many receives are promised for what the peer may still send.
    pub fn promised(&self) -> usize {
        self.common.credits.may_come() as usize + FOR_SIGNALS
    }

    /// Takes the send queue out of the link. When the queue is dropped, so is the queue pair.
    pub fn take_queue(&self) -> Option<SendQueue> {
        self.outbound.take_queue()
    }
}
