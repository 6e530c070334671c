//! A link: what the two halves of a stream and the poller have in common.

mod inbound;
mod outbound;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use doorbell_verbs::{Attachment, Buf, Connection, Queues, SendQueue, Stand};

use crate::error::Over;
use crate::hub::Hub;
use crate::questions::Question;
use crate::wire::{Hello, Signal, Violation};

use inbound::Inbound;
pub(crate) use inbound::Next;
use outbound::Outbound;
pub(crate) use outbound::RESERVE;

/// A stream, from when its queue pair is made until nothing of it is left.
pub(crate) struct Link {
    pub hub: Arc<Hub>,
    pub connection: Connection,
    /// How many completions there were before any of the link's.
    pub since: usize,
    /// How the peer is called, once that is known.
    peer: OnceLock<String>,
    pub inbound: Inbound,
    pub outbound: Outbound,
    /// Whether this side has sent something behind what it has received.
    pub question: Question,
    /// How many messages with bytes the peer may send.
    granted: AtomicU32,
    /// How many messages were read and the peer was not told of.
    owed: AtomicU32,
    /// Whether nothing of the connection is in the completion queue any more.
    drained: AtomicBool,
}

impl Link {
    /// A link whose connection is to be made. What this side takes must be promised.
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

    /// How the peer is called.
    pub fn peer(&self) -> &str {
        self.peer.get().map_or("a peer that is just being connected", String::as_str)
    }

    /// The connection with `peer` stands, and the peer has said hello.
    pub fn open(&self, queues: Queues, hello: Hello, peer: String) {
        let _ = self.peer.set(peer);
        let Queues { send, .. } = queues;
        self.outbound.open(send, self.hub.config.segment, hello);
        // It may be over already, and then whoever looked found no queue.
        if let Stand::Ended(ending) = self.connection.stand() {
            self.outbound.ends(ending.into());
        }
    }

    /// Takes in a message. Whether somebody was woken.
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

    /// The peer is no end of a byte stream, and is left.
    #[cold]
    pub fn violates(&self, violation: Violation) -> bool {
        tracing::debug!(peer = self.peer(), %violation, "a peer is left");
        let over = Over::Violated(violation);
        let woke = self.outbound.ends(over.clone()) | self.inbound.is_over(over);
        let connection = self.connection.clone();
        self.hub.runtime.spawn(async move { connection.disconnect(&[]).await });
        woke
    }

    /// A message's bytes were read, all of them: the buffer serves again, and the peer may send
    /// another, of which it is told by and by.
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

    /// How many credits are worth a message of their own.
    fn much(&self) -> u32 {
        (u32::from(self.hub.config.credits()) / 2).max(1)
    }

    /// The credits that the peer is to be told of, if they are as many as `least`: from here on
    /// they count as given.
    fn credits_to_give(&self, least: u32) -> u16 {
        if self.owed.load(Ordering::Relaxed) < least.max(1) {
            return 0;
        }
        let owed = self.owed.swap(0, Ordering::Relaxed);
        self.granted.fetch_add(owed, Ordering::Relaxed);
        // No more than there are credits.
        owed as u16
    }

    /// Something was sent, for which the peer may have an answer.
    pub fn asks(&self) {
        // A device that loses nothing tells by itself when a peer has ended.
        if !self.hub.nic.capabilities().lossless {
            self.question.is_asked();
            self.hub.prober.starts(self);
        }
    }

    /// Why the connection is over, which has just refused something.
    pub fn connection_error(&self, writes: bool) -> io::Error {
        self.over().error(self.peer(), writes)
    }

    fn over(&self) -> Over {
        match self.connection.stand() {
            Stand::Ended(ending) => ending.into(),
            _ => Over::Left,
        }
    }

    /// The connection is over: nothing is sent any more. What has come is still to be read.
    pub fn ended(&self, over: Over) -> bool {
        self.outbound.ends(over)
    }

    /// Nothing of the connection is in the completion queue any more.
    pub fn drained(&self) -> bool {
        self.drained.store(true, Ordering::Release);
        self.outbound.ends(self.over()) | self.inbound.is_over(self.over())
    }

    /// Whether nothing comes any more.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }

    /// Lets go of all that nobody reads any more.
    pub fn close(&self) {
        for buffer in self.inbound.close() {
            self.hub.buffers.give(buffer);
        }
    }

    /// What is promised for what the peer may still send, and for signals.
    pub fn promised(&self) -> usize {
        let may_come = self.granted.load(Ordering::Relaxed) + self.owed.load(Ordering::Relaxed);
        may_come as usize + crate::buffers::FOR_SIGNALS
    }

    /// Takes the sending queue, with which the queue pair goes.
    pub fn take_queue(&self) -> Option<SendQueue> {
        self.outbound.take_queue()
    }
}
