//! Sends that were posted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::SendError;
use crate::slot::Slot;

/// The outcome of a send.
pub type SendSlot = Slot<Result<(), SendError>>;

/// A send that was posted: a future of its outcome. The message is sent whether or not the future
/// is awaited or dropped.
///
/// It is done when the message has left, or, of a
/// [synchronous](super::Peer::send_synchronously) send, when a receive has taken the message.
#[must_use = "an outcome that nobody looks at may be an error"]
#[derive(Debug)]
pub struct Sending(State);

#[derive(Debug)]
enum State {
    Done(Option<Result<(), SendError>>),
    Waits(Arc<SendSlot>),
}

impl Sending {
    pub(super) fn done(outcome: Result<(), SendError>) -> Self {
        Self(State::Done(Some(outcome)))
    }

    pub(super) fn waits(slot: Arc<SendSlot>) -> Self {
        Self(State::Waits(slot))
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<(), SendError>> {
        match &mut self.0 {
            State::Done(outcome) => outcome.take(),
            State::Waits(slot) => slot.take(),
        }
    }
}

impl Future for Sending {
    type Output = Result<(), SendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Done(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
            State::Waits(slot) => slot.poll(context),
        }
    }
}
