//! Links: what the two halves of a stream share with the poller.

mod inbound;
mod outbound;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use doorbell_verbs::{Attachment, Buf, Connection, ConnectionState, Queues, SendQueue};

use crate::error::Over;
use crate::hub::Hub;
use crate::questions::Question;
use crate::wire::{Hello, Signal, Violation};

use inbound::Inbound;
pub(crate) use inbound::Next;
use outbound::Outbound;
pub(crate) use outbound::RESERVE;

/// The shared state of a stream, from the making of its queue pair until the queue pair is dropped.
pub(crate) struct Link {
    pub hub: Arc<Hub>,
    pub connection: Connection,
    /// How many completions had ever come when the queue pair was made: none of them is the link's.
    pub since: usize,
    /// The peer's name, for errors. It is set when the connection stands.
    peer: OnceLock<String>,
    pub inbound: Inbound,
    pub outbound: Outbound,
    /// Whether this side waits for an answer.
    pub question: Question,
    /// How many messages with bytes the peer may still send.
    granted: AtomicU32,
    /// How many messages were read whose credits were not given back yet.
    owed: AtomicU32,
    /// Whether the connection is over and all its completions were handled.
    drained: AtomicBool,
}

impl Link {
    /// Makes a link for a connection before the connection stands. Receives for the whole window
    /// must have been promised.
    pub fn new(hub: &Arc<Hub>, connection: Connection, since: usize) -> Self {
        Self {
            hub: hub.clone(),
            connection,
            since,
            peer: OnceLock::new(),
            inbound: Inbound::default(),
            outbound: Outbound::default(),
            question: Question::default(),
            granted: AtomicU32::new(hub.config.credits().into()),
            owed: AtomicU32::new(0),
            drained: AtomicBool::new(false),
        }
    }

    /// Returns the peer's name.
    pub fn peer(&self) -> &str {
        self.peer.get().map_or("a peer that is just being connected", String::as_str)
    }

    /// Opens the link when its connection with `peer` stands and the peer has said hello.
    pub fn open(&self, queues: Queues, hello: Hello, peer: String) {
        let _ = self.peer.set(peer);
        let Queues { send, .. } = queues;
        self.outbound.open(send, self.hub.config.segment, hello);
        // It may be over already, and then whoever looked found no queue.
        if let ConnectionState::Ended(ending) = self.connection.state() {
            self.outbound.ends(ending.into());
        }
    }

    /// Takes in a message from the peer. Returns whether a task was woken.
    pub fn received(&self, buffer: Buf, attached: Attachment) -> bool {
        let taken = match attached {
            Attachment::Nothing => self.takes(buffer, None),
            Attachment::Imm(imm) => match Signal::parse(imm) {
                Some(signal) => self.takes(buffer, Some(signal)),
                None => Err(Violation::Signal(imm.0)),
            },
            Attachment::Invalidate(_) | Attachment::Metadata(_) => Err(Violation::NoSend),
        };
        taken.unwrap_or_else(|violation| self.violates(violation))
    }

    /// Takes in a message and what it signals, if the peer may send both.
    fn takes(&self, buffer: Buf, signal: Option<Signal>) -> Result<bool, Violation> {
        let mut woke = false;
        let Signal { credits, end } = signal.unwrap_or_default();
        if buffer.is_empty() && credits == 0 && !end {
            return Err(Violation::Empty);
        }
        if credits > 0 {
            woke |= self.outbound.granted(credits)?;
        }
        if !buffer.is_empty() {
            self.question.is_answered();
            let less = |granted: u32| granted.checked_sub(1);
            let granted = self.granted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            granted.map_err(|_| Violation::Overrun)?;
            self.hub.buffers.release(1);
            match self.inbound.put(buffer)? {
                Ok(woken) => woke |= woken,
                Err(unread) => self.has_read(unread),
            }
        } else {
            self.hub.buffers.give(buffer);
        }
        if end {
            woke |= self.inbound.ends()?;
        }
        Ok(woke)
    }

    /// Breaks the stream off, because the peer broke the rules. Returns whether a task was woken.
    #[cold]
    pub fn violates(&self, violation: Violation) -> bool {
        tracing::debug!(peer = self.peer(), %violation, "a peer is left");
        let over = Over::Violated(violation);
        let woke = self.outbound.ends(over.clone()) | self.inbound.is_over(over);
        let connection = self.connection.clone();
        self.hub.runtime.spawn(async move { connection.disconnect(&[]).await });
        woke
    }

    /// Takes back the buffer of a message that was read completely. The credit of the message is
    /// given back to the peer with other credits.
    pub fn has_read(&self, buffer: Buf) {
        let buffers = &self.hub.buffers;
        buffers.give(buffer);
        if self.inbound.is_closed() {
            // Nobody reads any more, and the peer is to stop.
            return;
        }
        buffers.promise(1);
        let owed = self.owed.fetch_add(1, Ordering::Relaxed) + 1;
        if owed >= self.much() {
            self.outbound.pump(self);
        }
    }

    /// Returns how many credits are worth a message of their own.
    fn much(&self) -> u32 {
        (u32::from(self.hub.config.credits()) / 2).max(1)
    }

    /// Returns all credits that are owed to the peer, for the caller to send, or 0 if they are
    /// fewer than `least`.
    fn credits_to_give(&self, least: u32) -> u16 {
        if self.owed.load(Ordering::Relaxed) < least.max(1) {
            return 0;
        }
        let owed = self.owed.swap(0, Ordering::Relaxed);
        self.granted.fetch_add(owed, Ordering::Relaxed);
        // No more than there are credits.
        owed as u16
    }

    /// Takes note that bytes were sent, which the peer may answer.
    pub fn asks(&self) {
        // A device that loses nothing tells by itself when a peer has ended.
        if !self.hub.nic.capabilities().lossless {
            self.question.is_asked();
            self.hub.prober.starts(self);
        }
    }

    /// Returns the error of a request that a connection has refused because it is over.
    pub fn connection_error(&self, writes: bool) -> io::Error {
        self.over().error(self.peer(), writes)
    }

    /// Returns why the connection is over.
    fn over(&self) -> Over {
        match self.connection.state() {
            ConnectionState::Ended(ending) => ending.into(),
            _ => Over::Left,
        }
    }

    /// Takes note that the connection is over: nothing can be sent any more. Messages that have
    /// come can still be read. Returns whether a task was woken.
    pub fn ended(&self, over: Over) -> bool {
        self.outbound.ends(over)
    }

    /// Ends both directions of the stream, because nobody serves the endpoint any more.
    #[cold]
    pub fn runtime_ended(&self) {
        self.outbound.ends(Over::RuntimeEnded);
        self.inbound.is_over(Over::RuntimeEnded);
        self.drained.store(true, Ordering::Release);
    }

    /// Takes note that all completions of the connection were handled, after its end. Returns
    /// whether a task was woken.
    pub fn drained(&self) -> bool {
        self.drained.store(true, Ordering::Release);
        self.outbound.ends(self.over()) | self.inbound.is_over(self.over())
    }

    /// Returns whether the connection is over and all its completions were handled.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }

    /// Drops what is unread, because the program has dropped the stream.
    pub fn close(&self) {
        for buffer in self.inbound.close() {
            self.hub.buffers.give(buffer);
        }
    }

    /// Returns how many receives are promised for what the peer may still send.
    pub fn promised(&self) -> usize {
        let may_come = self.granted.load(Ordering::Relaxed) + self.owed.load(Ordering::Relaxed);
        may_come as usize + crate::buffers::FOR_SIGNALS
    }

    /// Takes the send queue out of the link. When it is dropped, so is the queue pair.
    pub fn take_queue(&self) -> Option<SendQueue> {
        self.outbound.take_queue()
    }
}
