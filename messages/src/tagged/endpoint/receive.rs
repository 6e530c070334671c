//! Receives that were posted.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};

use super::arrived::{Arrived, Content, Met};
use super::core::{Core, PostedReceive};
use super::peer::Peer;
use super::receive_id::ReceiveId;

use super::waiting::sealed::Sealed;
use super::waiting::{Request, Waits};
use crate::matching::{Envelope, Pattern, Source};
use crate::tagged::error::ReceiveError;

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
        Self { source: Some(peer.source()), ..self }
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
    stage: Stage,
    /// The core of the endpoint, until the program has its message, whose sender takes it over.
    core: Option<Arc<Core>>,
    waits: Waits,
    /// The room of the receive, in bytes.
    room: usize,
    /// The pieces into which the body is scattered, until the program takes the message.
    pieces: Vec<BytesMut>,
}

/// How far a receive has come.
enum Stage {
    /// The outcome was there when the receive was posted.
    Here(Box<Result<Met, ReceiveError>>),
    /// The outcome is to come.
    Waits(ReceiveId),
    /// The program has taken the outcome.
    Taken,
}

impl Receiving {
    /// Posts a receive of a message of at most `room` bytes that `of` matches.
    pub(super) fn post(core: &Arc<Core>, of: Match, room: usize) -> Self {
        Self::post_with(core, of, room, Vec::new())
    }

    /// Posts a receive of a message that `of` matches, whose body is scattered into pieces.
    pub(super) fn post_into(core: &Arc<Core>, of: Match, pieces: Vec<BytesMut>) -> Self {
        let room = pieces.iter().map(|piece| piece.capacity() - piece.len()).sum();
        Self::post_with(core, of, room, pieces)
    }

    fn post_with(core: &Arc<Core>, of: Match, room: usize, pieces: Vec<BytesMut>) -> Self {
        let stage = match core.receive(of.pattern(), room) {
            PostedReceive::Here(outcome) => Stage::Here(Box::new(outcome)),
            PostedReceive::Waits(id) => Stage::Waits(id),
        };
        Self { stage, core: Some(core.clone()), waits: Waits::default(), room, pieces }
    }

    /// Makes the message that the program gets.
    fn message(&mut self, met: Met, core: Arc<Core>) -> Result<Message, ReceiveError> {
        let (room, Envelope { source, bits }) = (self.room, met.envelope);
        if met.message.len > room {
            core.truncated(&met);
            return Err(ReceiveError::Truncated { bits, len: met.message.len, room });
        }
        let Arrived { len, content, .. } = met.message;
        let why = match content {
            Content::Here(body) => {
                let (pieces, body) = self.scatter(body);
                return Ok(Message { bits, body, pieces, from: Peer::new(core, source) });
            }
            Content::Lost(why) => why.into_string(),
            Content::There(_) | Content::Coming(_) => "its body has not come".to_owned(),
        };
        let peer = core.lock().peer_text(source);
        Err(ReceiveError::NotPulled { bits, len, peer, why })
    }

    /// Scatters a body into the pieces of the receive. Returns the pieces, and what none of them
    /// had room for.
    fn scatter(&mut self, mut body: Bytes) -> (Vec<BytesMut>, Bytes) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in &mut pieces {
            let part = body.split_to(body.len().min(piece.capacity() - piece.len()));
            piece.extend_from_slice(&part);
        }
        (pieces, body)
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<Message, ReceiveError>> {
        let outcome = match &mut self.stage {
            Stage::Waits(id) => self.core.as_ref()?.take(*id)?,
            Stage::Here(_) | Stage::Taken => self.take_here()?,
        };
        Some(self.ends(outcome))
    }

    /// Ends the receive with its outcome.
    fn ends(&mut self, outcome: Result<Met, ReceiveError>) -> Result<Message, ReceiveError> {
        self.stage = Stage::Taken;
        let core = self.core.take().ok_or(ReceiveError::Closed)?;
        self.message(outcome?, core)
    }

    /// Takes the outcome that was there when the receive was posted.
    fn take_here(&mut self) -> Option<Result<Met, ReceiveError>> {
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Here(outcome) => Some(*outcome),
            Stage::Waits(_) | Stage::Taken => None,
        }
    }

    /// Waits for the outcome without making progress, as a task in the background does. Others have
    /// the NIC make progress meanwhile.
    pub(crate) fn poll_in_background(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Message, ReceiveError>> {
        if let (Stage::Waits(id), Some(core)) = (&self.stage, &self.core) {
            core.wake_later(*id, context.waker());
        }
        self.test().map_or(Poll::Pending, Poll::Ready)
    }

    /// Cancels the receive, unless a message has come to it. Returns whether the receive was
    /// cancelled; if not, the message is still to be had.
    pub fn cancel(&mut self) -> bool {
        match (&self.stage, &self.core) {
            (Stage::Waits(id), Some(core)) => core.cancel(*id),
            _ => false,
        }
    }
}

impl Sealed for Receiving {}

impl Request for Receiving {
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Taken)
    }
}

impl Future for Receiving {
    type Output = Result<Message, ReceiveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over(), "the outcome was taken before, by `test` or by awaiting it");
        if let Some(outcome) = self.test() {
            return Poll::Ready(outcome);
        }
        let Self { stage: Stage::Waits(id), core: Some(core), waits, .. } = &mut *self else {
            return Poll::Pending;
        };
        let arm = |waker: &Waker| core.wake_later(*id, waker);
        let outcome = ready!(waits.poll_until(core, context, || core.take(*id), arm));
        Poll::Ready(self.ends(outcome))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let Some(core) = &self.core else { return };
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Taken => {}
            Stage::Here(outcome) => outcome.into_iter().for_each(|met| core.put_back(met)),
            Stage::Waits(id) => core.dropped(id),
        }
    }
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("room", &self.room).finish_non_exhaustive()
    }
}
