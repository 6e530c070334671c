//! Sends that were posted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Core;
use super::frame::SendSlot;
use super::lane::Lane;
use super::shared::{Posted, Shared};
use super::waiting::sealed::Sealed;
use super::waiting::{Request, Waits};
use crate::matching::Source;
use crate::tagged::error::SendError;

/// A send that was posted: a future of its outcome. The message is sent whether or not the future
/// is awaited or dropped.
///
/// The send is done when the message has left, or, of a
/// [synchronous](super::Peer::send_synchronously) send, when a receive has taken the message. A
/// long message has left when its receiver has pulled it.
///
/// The outcome comes once. Awaiting the future again after that, or after [`test`](Self::test) has
/// returned the outcome, panics.
#[must_use = "an outcome that nobody looks at may be an error"]
#[derive(Debug)]
pub struct Sending(State);

#[derive(Debug)]
enum State {
    Done(Option<Result<(), SendError>>),
    Waits {
        slot: Arc<SendSlot>,
        /// The way by which the message leaves.
        lane: Arc<Lane>,
        core: Arc<Core>,
        waits: Waits,
        /// The peer and the order of the message, if it is held.
        held: Option<(Source, u64)>,
    },
}

impl Sending {
    pub(super) fn done(outcome: Result<(), SendError>) -> Self {
        Self(State::Done(Some(outcome)))
    }

    pub(super) fn of(core: &Arc<Core>, posted: Result<Posted, SendError>) -> Self {
        match posted {
            Err(why) => Self::done(Err(why)),
            Ok(Posted { slot, lane, held }) => match slot.take() {
                Some(outcome) => Self::done(outcome),
                None => {
                    let (core, waits) = (core.clone(), Waits::default());
                    Self(State::Waits { slot, lane, core, waits, held })
                }
            },
        }
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<(), SendError>> {
        match &mut self.0 {
            State::Done(outcome) => outcome.take(),
            State::Waits { slot, .. } => slot.take(),
        }
    }

    /// Cancels the send, if the message still waits here because the peer has no room for it.
    /// Returns whether the send was cancelled; if not, its outcome is still to be had.
    pub fn cancel(&mut self) -> bool {
        let State::Waits { slot, core, held, .. } = &mut self.0 else { return false };
        let (held, shared) = (held.take(), Shared::of(core));
        let cancelled = held.zip(shared).is_some_and(|(held, shared)| shared.cancel_send(held));
        if cancelled {
            slot.fill(Err(SendError::Cancelled));
        }
        cancelled
    }
}

impl Sealed for Sending {}

impl Request for Sending {
    fn is_over(&self) -> bool {
        match &self.0 {
            State::Done(outcome) => outcome.is_none(),
            State::Waits { slot, .. } => slot.is_taken(),
        }
    }
}

impl Future for Sending {
    type Output = Result<(), SendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            !self.is_over(),
            "the send's outcome was taken before, by `test` or by awaiting it"
        );
        match &mut self.0 {
            State::Done(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
            State::Waits { slot, lane, core, waits, .. } => {
                if let Some(outcome) = slot.take() {
                    return Poll::Ready(outcome);
                }
                lane.send_more();
                let mut seen = 0;
                let find = || {
                    core.send_due();
                    lane.send_more_by_new_credits(&mut seen);
                    slot.take()
                };
                waits.poll_until(core, context, find, |waker| slot.wake_later(waker))
            }
        }
    }
}
