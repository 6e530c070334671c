//! A message that is sent piece by piece.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::error::{SendError, Unsent, WhyGone};
use super::held::{Held, Outgoing};
use super::id::StreamId;
use super::link::{Begun, Link};
use super::sending::Stopped;
use super::wire::{Packet, Reason};

/// A message to a peer that is sent piece by piece, and then [ended](Self::end).
///
/// Pieces are held back until they fill a packet, the message ends, or it is
/// [flushed](Self::flush). So a message that fits into a packet leaves as one, however many pieces
/// it has. A future of a piece that is dropped may have sent a part of the piece.
///
/// A message that is dropped without an end is given up: its receiver gets an
/// [error](super::ReceiveError::Abandoned), unless nothing of the message has left yet.
pub struct Message {
    link: Arc<Link>,
    stream: StreamId,
    slot: usize,
    /// The longest that packets may be.
    longest: usize,
    /// Bytes that were not sent yet, fewer than the longest packet or as many.
    held: Held,
    /// Bytes behind those that are held, in the memory in which the program has them. There are
    /// some only if nothing is held.
    tail: Bytes,
    has_begun: bool,
    has_ended: bool,
}

impl Message {
    pub(super) fn new(link: &Arc<Link>, stream: StreamId, begun: Begun) -> Self {
        let Begun { slot, longest, buffer } = begun;
        Self {
            link: link.clone(),
            stream,
            slot,
            longest,
            held: Held::using(buffer),
            tail: Bytes::new(),
            has_begun: false,
            has_ended: false,
        }
    }

    /// Sends a piece of the message. Bytes that don't fill a packet are copied, and leave with
    /// those that follow.
    ///
    /// # Errors
    /// When the peer has gone, or takes no more of the message.
    pub async fn send(&mut self, piece: impl AsRef<[u8]>) -> Result<(), SendError> {
        let mut rest = piece.as_ref();
        self.hold_tail().await?;
        while !rest.is_empty() {
            let longest = self.longest();
            if self.held.is_empty() && rest.len() > longest {
                let (now, later) = rest.split_at(longest);
                self.transmit(now).await?;
                rest = later;
                continue;
            }
            rest = &rest[self.hold(rest).await?..];
        }
        Ok(())
    }

    /// Sends a piece that leaves from the memory in which it is, but for the bytes that share a
    /// packet with other pieces.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_bytes(&mut self, piece: impl Into<Bytes>) -> Result<(), SendError> {
        let mut rest = piece.into();
        self.hold_tail().await?;
        while !rest.is_empty() {
            let longest = self.longest();
            if !self.held.is_empty() {
                let held = self.hold(&rest).await?;
                let _ = rest.split_to(held);
            } else if rest.len() > longest {
                let now = rest.split_to(longest);
                self.transmit(&now).await?;
            } else {
                self.tail = std::mem::take(&mut rest);
            }
        }
        Ok(())
    }

    /// Sends what is held back.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn flush(&mut self) -> Result<(), SendError> {
        if !self.tail.is_empty() {
            let tail = self.tail.clone();
            self.transmit(&tail).await?;
            self.tail = Bytes::new();
        }
        self.transmit_held().await
    }

    /// Ends the message, and waits until all of it has left. Whether the handler takes all of it,
    /// and without an error, is not said: see [`end_handled`](Self::end_handled).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn end(mut self) -> Result<(), SendError> {
        self.send_end(false).await
    }

    /// Ends the message, and waits until the peer's handler has returned.
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the handler has failed or has not received all.
    pub async fn end_handled(mut self) -> Result<(), SendError> {
        self.send_end(true).await?;
        self.link.handled(self.slot).await.map_err(|why| self.error(why))
    }

    /// Returns how long the next packet of the message is at most. The first is a few bytes shorter
    /// than the others.
    pub fn longest_packet(&self) -> usize {
        self.longest()
    }

    async fn send_end(&mut self, waits: bool) -> Result<(), SendError> {
        let (packet, begins) = self.packet();
        let packet = Packet { ends: true, waits, ..packet };
        let bytes = match self.held.is_empty() {
            true => Outgoing::Slice(&self.tail),
            false => Outgoing::Held(&mut self.held),
        };
        let sent = self.link.send(packet, begins, bytes).await;
        self.has_ended = sent.is_ok();
        sent.map_err(|why| self.error(why))
    }

    /// Holds bytes of a piece behind those that are held, and sends these first if they are a
    /// packet. Returns how many bytes of the piece are held now.
    async fn hold(&mut self, piece: &[u8]) -> Result<usize, SendError> {
        if self.held.len() >= self.longest() {
            self.transmit_held().await?;
        }
        let count = piece.len().min(self.longest() - self.held.len());
        self.held.extend(&piece[..count], self.link.peer(), self.words());
        Ok(count)
    }

    /// Copies the tail, since bytes follow that are to share its packet.
    async fn hold_tail(&mut self) -> Result<(), SendError> {
        if self.tail.len() >= self.longest() {
            return self.flush().await;
        }
        let tail = std::mem::take(&mut self.tail);
        self.held.extend(&tail, self.link.peer(), self.words());
        Ok(())
    }

    async fn transmit_held(&mut self) -> Result<(), SendError> {
        if self.held.is_empty() {
            return Ok(());
        }
        // In place, so that the bytes stay if the future is dropped.
        let (packet, begins) = self.packet();
        let sent = self.link.send(packet, begins, Outgoing::Held(&mut self.held)).await;
        sent.map_err(|why| self.error(why))?;
        self.has_begun = true;
        Ok(())
    }

    async fn transmit(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        let (packet, begins) = self.packet();
        let sent = self.link.send(packet, begins, Outgoing::Slice(bytes)).await;
        sent.map_err(|why| self.error(why))?;
        self.has_begun = true;
        Ok(())
    }

    /// Returns how many words the next packet has beside its bytes.
    fn words(&self) -> usize {
        if self.has_begun { 1 } else { 2 }
    }

    /// Returns how long the next packet is at most: the first has a word more than others.
    fn longest(&self) -> usize {
        self.longest - size_of::<u64>() * (self.words() - 1)
    }

    /// Returns the next packet of the message, and the number of its stream if it is the first.
    fn packet(&self) -> (Packet, Option<u64>) {
        let packet = Packet { slot: self.slot, ..Packet::default() };
        (packet, (!self.has_begun).then_some(self.stream.number()))
    }

    fn error(&self, why: Stopped) -> SendError {
        send_error(&self.link, self.stream, why)
    }
}

/// Returns the error of a message that the peer does not take.
#[cold]
pub(super) fn send_error(link: &Link, stream: StreamId, why: Stopped) -> SendError {
    let (peer, stream) = (link.peer().to_string().into(), stream.name());
    match why {
        Stopped::Gone => {
            let why = link.peer().ending().map_or(WhyGone::NotConnected, WhyGone::Ended);
            SendError::Gone { peer, what: Unsent::Stream(stream), why }
        }
        Stopped::Failed(Reason::NoHandler, _) => {
            SendError::NoHandler { peer, name: stream, known: None }
        }
        Stopped::Failed(Reason::Returned, _) => SendError::HandlerReturned { peer, stream },
        Stopped::Failed(Reason::Error, text) => {
            SendError::HandlerFailed { peer, stream, text: text.into() }
        }
        Stopped::Failed(Reason::Panicked, _) => SendError::HandlerPanicked { peer, stream },
        Stopped::Failed(Reason::Violation, _) => SendError::Refused { peer, stream },
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("to", self.link.peer())
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if !self.has_ended {
            self.link.abandon(self.slot, self.has_begun);
        }
        self.link.put_spare(self.held.take_spare());
    }
}
