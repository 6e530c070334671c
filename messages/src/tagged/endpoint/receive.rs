//! Receives that were posted.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::arrived::{Arrived, Content, Met};
use super::core::{Core, Outcome, PostedReceive};
use super::peer::Peer;
use super::places::ReceiveId;
use super::room::{Anywhere, Room};
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

/// A receive that was posted: a future of its message, or of what came into the program's
/// [memory](Room). Dropping it cancels the receive. A message that has come to the receive already,
/// or is on its way to it, is not lost by that: another receive takes it, in its turn. That is so,
/// too, if the message is too long for the receive, or if its body can't be pulled: as long as no
/// program has taken the error, the message waits.
///
/// The outcome comes once. Awaiting the future again after that, or after [`test`](Self::test) has
/// returned the outcome, panics.
#[must_use = "a receive that is dropped is cancelled"]
pub struct Receiving<R: Room = Anywhere> {
    stage: Stage,
    /// The core of the endpoint, until the program has its message, whose sender takes it over.
    core: Option<Arc<Core>>,
    waits: Waits,
    /// Where the body goes, until the program has its message.
    room: Option<R>,
}

/// How far a receive has come.
enum Stage {
    /// The outcome was there when the receive was posted, which takes so long a body.
    Here(Box<Result<Met, ReceiveError>>, usize),
    /// The outcome is to come.
    Waits(ReceiveId),
    /// The program has taken the outcome.
    Taken,
}

impl<R: Room> Receiving<R> {
    /// Posts a receive of a message of at most `most` bytes that `of` matches.
    #[inline]
    pub(super) fn post(core: &Arc<Core>, of: Match, most: usize, room: R) -> Self {
        let stage = match core.receive(of.pattern(), most, room.target()) {
            PostedReceive::Here(outcome) => Stage::Here(outcome, most),
            PostedReceive::Waits(id) => Stage::Waits(id),
        };
        Self { stage, core: Some(core.clone()), waits: Waits::default(), room: Some(room) }
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<R::Message, ReceiveError>> {
        self.test_inline()
    }

    /// The body of [`test`](Self::test), so that a message is made where its receiver wants it.
    #[inline(always)]
    fn test_inline(&mut self) -> Option<Result<R::Message, ReceiveError>> {
        let Stage::Waits(id) = self.stage else { return self.test_here() };
        let Self { core, room, .. } = self;
        let into = room.as_mut()?;
        let outcome = core.as_ref()?.take(id, |held| into.take_short(held))?;
        self.stage = Stage::Taken;
        let (core, room) = (core.take()?, room.take()?);
        Some(match outcome {
            Outcome::Short(Envelope { source, bits }, body) => {
                Ok(room.message(bits, body, Peer::new(core, source)))
            }
            Outcome::Other(outcome) => message(*outcome, room, core),
        })
    }

    /// Returns the outcome that was there when the receive was posted, once.
    #[cold]
    fn test_here(&mut self) -> Option<Result<R::Message, ReceiveError>> {
        let Stage::Here(outcome, most) = std::mem::replace(&mut self.stage, Stage::Taken) else {
            return None;
        };
        let (core, room) = (self.core.take()?, self.room.take()?);
        Some(message((*outcome, most), room, core))
    }

    /// Waits for the outcome without making progress, as a task in the background does. Others have
    /// the NIC make progress meanwhile.
    pub(crate) fn poll_in_background(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<R::Message, ReceiveError>> {
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

/// Makes what the program gets of an outcome, of how long a body the receive takes, and of where the
/// body goes.
fn message<R: Room>(
    (met, most): (Result<Met, ReceiveError>, usize),
    mut room: R,
    core: Arc<Core>,
) -> Result<R::Message, ReceiveError> {
    let Met { envelope: Envelope { source, bits }, message, .. } = met?;
    let Arrived { len, content, number } = message;
    if len > most {
        core.truncated(source, number);
        return Err(ReceiveError::Truncated { bits, len, room: most });
    }
    let body = match content {
        Content::Here(body) => Ok(room.take(body)),
        Content::InPlace => Ok(room.is_in_place(len)),
        Content::Lost(why) => Err(why.into_string()),
        Content::There(_) | Content::Coming(_) => Err("its body has not come".to_owned()),
    };
    match body {
        Ok(body) => Ok(room.message(bits, body, Peer::new(core, source))),
        Err(why) => {
            let peer = core.lock().peer_text(source);
            Err(ReceiveError::NotPulled { bits, len, peer, why })
        }
    }
}

impl<R: Room> Sealed for Receiving<R> {}

impl<R: Room> Request for Receiving<R> {
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Taken)
    }
}

impl<R: Room> Future for Receiving<R> {
    type Output = Result<R::Message, ReceiveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over(), "the outcome was taken before, by `test` or by awaiting it");
        if let Some(outcome) = self.test_inline() {
            return Poll::Ready(outcome);
        }
        let Self { stage: Stage::Waits(id), core: Some(core), waits, .. } = &mut *self else {
            return Poll::Pending;
        };
        let arm = |waker: &Waker| core.wake_later(*id, waker);
        ready!(waits.poll_until(core, context, || core.has_come(*id).then_some(()), arm));
        self.test().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<R: Room> Drop for Receiving<R> {
    fn drop(&mut self) {
        let Some(core) = &self.core else { return };
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Taken => {}
            Stage::Here(outcome, _) => outcome.into_iter().for_each(|met| core.put_back(met)),
            Stage::Waits(id) => core.dropped(id),
        }
    }
}

impl<R: Room> fmt::Debug for Receiving<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}
