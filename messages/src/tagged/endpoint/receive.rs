//! Receives that were posted.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use super::arrived::{Arrived, Content, Met, ReceiveSlot};
use super::peer::Peer;
use super::shared::Shared;
use super::waiting::sealed::Sealed;
use super::waiting::{Request, Waits};
use crate::matching::{Pattern, Source};
use crate::tagged::error::{ReceiveError, peer_text};
use crate::tagged::pacing::Receive;

/// A filter of messages for a receive, by their match bits and by the peer that sends them.
///
/// ```
/// use doorbell_messages::Match;
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
    /// Matches every message, whatever its bits and its sender.
    pub fn any() -> Self {
        Self { bits: 0, mask: 0, source: None }
    }

    /// Messages with these bits.
    pub fn exactly(bits: u64) -> Self {
        Self { bits, mask: u64::MAX, source: None }
    }

    /// Messages with these bits, where the [mask](Self::mask) has ones. Unless it is set, the mask
    /// has ones everywhere.
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
    /// The bytes that were sent. Of a receive into [pieces](super::Endpoint::receive_into), the
    /// bytes that no piece had room for, which are none.
    pub body: Bytes,
    /// The pieces of a receive into [pieces](super::Endpoint::receive_into), filled in their order.
    pub pieces: Vec<BytesMut>,
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
    /// The peer that has sent the message.
    pub from: Peer,
}

/// A receive that was posted: a future of its message. Dropping it cancels the receive. A message
/// that has come to the receive already, or is on its way to it, is not lost by that: another
/// receive takes it, in its turn. That is so, too, if the message is too long for the receive, or
/// if its body can't be pulled: as long as no program has taken the error, the message waits.
///
/// The outcome comes once. Awaiting the future again after that, or after [`test`](Self::test) has
/// returned the outcome, panics.
#[must_use = "a receive that is dropped is cancelled"]
pub struct Receiving {
    slot: Arc<ReceiveSlot>,
    waits: Waits,
    /// The name of the receive while it may wait.
    posted: Option<Receive>,
    /// Whether the program has taken the outcome.
    is_taken: bool,
}

impl Receiving {
    /// Posts a receive of a message that `of` matches. The outcome will be in `slot`.
    pub(super) fn post(shared: &Arc<Shared>, of: Match, slot: ReceiveSlot) -> Self {
        let (slot, posted) = shared.receive(of.pattern(), slot);
        Self { slot, waits: Waits::new(shared), posted, is_taken: false }
    }

    /// Makes the message that the program gets.
    fn message(&self, met: Met) -> Result<Message, ReceiveError> {
        let room = self.slot.room;
        if met.message.len > room {
            self.waits.shared().truncated(&met);
            let Arrived { bits, len, .. } = met.message;
            return Err(ReceiveError::Truncated { bits, len, room });
        }
        let Arrived { bits, len, content, from, .. } = met.message;
        let why = match content {
            Content::Here(body) => {
                let (pieces, body) = self.slot.scatter(body);
                let from = Peer::of(&from, self.waits.shared());
                return Ok(Message { bits, body, pieces, from });
            }
            Content::Lost(why) => why,
            Content::There(_) | Content::Coming(_) => "its body has not come".to_owned(),
        };
        let peer = peer_text(from.name.as_deref());
        Err(ReceiveError::NotPulled { bits, len, peer, why })
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<Message, ReceiveError>> {
        let outcome = self.slot.outcome.take()?;
        self.is_taken = true;
        Some(outcome.and_then(|met| self.message(met)))
    }

    /// Waits for the outcome without making progress, as a task in the background does. Others have
    /// the NIC make progress meanwhile.
    pub(crate) fn poll_in_background(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Message, ReceiveError>> {
        self.slot.outcome.wake_later(context.waker());
        self.test().map_or(Poll::Pending, Poll::Ready)
    }

    /// Cancels the receive, unless a message has come to it. Returns whether the receive was
    /// cancelled; if not, the message is still to be had.
    pub fn cancel(&mut self) -> bool {
        let posted = self.posted.take();
        let cancelled = posted.is_some_and(|receive| self.waits.shared().cancel(receive));
        if cancelled {
            self.slot.outcome.fill(Err(ReceiveError::Cancelled));
        }
        cancelled
    }
}

impl Sealed for Receiving {}

impl Request for Receiving {
    fn is_over(&self) -> bool {
        self.is_taken
    }
}

impl Future for Receiving {
    type Output = Result<Message, ReceiveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over(), "the outcome was taken before, by `test` or by awaiting it");
        let Self { slot, waits, is_taken, .. } = &mut *self;
        let outcome = std::task::ready!(waits.poll(&slot.outcome, context));
        *is_taken = true;
        Poll::Ready(outcome.and_then(|met| self.message(met)))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        self.waits.shared().dropped(self.posted.take(), &self.slot);
    }
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("room", &self.slot.room).finish_non_exhaustive()
    }
}
