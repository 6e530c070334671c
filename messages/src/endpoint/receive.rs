//! Receives that were posted.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::peer::Peer;
use super::state::Shared;
use crate::error::ReceiveError;
use crate::matching::{Pattern, Source};
use crate::pacing::Receive;
use crate::slot::Slot;

/// What messages a receive takes: by their match bits, and by the peer that sends them.
///
/// ```
/// use doorbell::messages::Match;
///
/// // The upper half is a kind of message, and the lower half may be anything.
/// let results = Match::bits(3 << 32).mask(0xffff_ffff << 32);
/// # let _ = (results, Match::any(), Match::exactly(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match {
    bits: u64,
    mask: u64,
    source: Option<Source>,
}

impl Match {
    /// Any message.
    pub fn any() -> Self {
        Self { bits: 0, mask: 0, source: None }
    }

    /// Messages with these bits.
    pub fn exactly(bits: u64) -> Self {
        Self { bits, mask: u64::MAX, source: None }
    }

    /// Messages with these bits, where the [mask](Self::mask) has ones; it has unless it is set.
    pub fn bits(bits: u64) -> Self {
        Self::exactly(bits)
    }

    /// Compares the bits alone where the mask has ones.
    pub fn mask(self, mask: u64) -> Self {
        Self { mask, ..self }
    }

    /// Messages from this peer alone.
    pub fn from(self, peer: &Peer) -> Self {
        Self { source: Some(peer.source), ..self }
    }

    pub(super) fn pattern(self) -> Pattern {
        Pattern::new(self.source, self.bits, self.mask)
    }
}

/// A message that was received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The bytes that were sent.
    pub body: Bytes,
    /// The sender, to which an answer can be sent.
    pub from: Peer,
}

/// A message that waits for a receive, as [`Endpoint::probe`](super::Endpoint::probe) sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probed {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The length of the body.
    pub len: usize,
    /// The sender.
    pub from: Peer,
}

/// The place of a receive's outcome, and the room that the receive has.
#[derive(Debug)]
pub struct ReceiveSlot {
    pub outcome: Slot<Result<Message, ReceiveError>>,
    pub room: usize,
}

impl ReceiveSlot {
    /// Gives the receive its message, if it has room for that.
    pub fn give(&self, message: Message) {
        let (len, room, bits) = (message.body.len(), self.room, message.bits);
        self.outcome.fill(match len <= room {
            true => Ok(message),
            false => Err(ReceiveError::Truncated { bits, len, room }),
        });
    }
}

/// A receive that was posted: a future of its message. Dropping it cancels the receive, if no
/// message has come to it yet; a message that has come is lost then.
#[must_use = "a receive that is dropped is cancelled"]
pub struct Receiving {
    slot: Arc<ReceiveSlot>,
    /// The name of the receive while it may wait.
    waits: Option<(Arc<Shared>, Receive)>,
}

impl Receiving {
    pub(super) fn new(slot: Arc<ReceiveSlot>, waits: Option<(Arc<Shared>, Receive)>) -> Self {
        Self { slot, waits }
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<Message, ReceiveError>> {
        self.slot.outcome.take()
    }

    /// Cancels the receive. Returns whether it was cancelled before a message came to it; if not,
    /// the message is still to be had.
    pub fn cancel(&mut self) -> bool {
        let cancelled = self.waits.take().is_some_and(|(shared, receive)| shared.cancel(receive));
        if cancelled {
            self.slot.outcome.fill(Err(ReceiveError::Cancelled));
        }
        cancelled
    }
}

impl Future for Receiving {
    type Output = Result<Message, ReceiveError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.outcome.poll(context)
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if let Some((shared, receive)) = self.waits.take() {
            shared.cancel(receive);
        }
    }
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("room", &self.slot.room).finish_non_exhaustive()
    }
}
