//! Sends that were posted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::core::Core;
use super::departures::Ticket;
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
    /// The message of so many bytes waits on the lane for its turn.
    Leaves {
        lane: Arc<Lane>,
        ticket: Ticket,
        len: usize,
        core: Arc<Core>,
        waits: Waits,
    },
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

    /// The send of a message of `len` bytes that was posted.
    pub(super) fn of(core: &Arc<Core>, len: usize, posted: Result<Posted, SendError>) -> Self {
        match posted {
            Err(why) => Self::done(Err(why)),
            Ok(Posted::Leaves { lane, ticket }) => match lane.has_left(ticket, len) {
                Some(outcome) => Self::done(outcome),
                None => {
                    let (core, waits) = (core.clone(), Waits::default());
                    Self(State::Leaves { lane, ticket, len, core, waits })
                }
            },
            Ok(Posted::Waits { slot, lane, held }) => match slot.take() {
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
            State::Leaves { lane, ticket, len, .. } => {
                let outcome = lane.has_left(*ticket, *len)?;
                self.0 = State::Done(None);
                Some(outcome)
            }
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
            State::Leaves { .. } => false,
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
        if let Some(outcome) = self.test() {
            return Poll::Ready(outcome);
        }
        match &mut self.0 {
            State::Done(_) => Poll::Pending,
            State::Leaves { lane, ticket, len, core, waits } => {
                let find = || lane.has_left(*ticket, *len);
                let arm = |waker: &Waker| lane.wake_when_left(*ticket, waker);
                let outcome = ready!(sending(waits, (core, lane), context, find, arm));
                self.0 = State::Done(None);
                Poll::Ready(outcome)
            }
            State::Waits { slot, lane, core, waits, .. } => {
                let arm = |waker: &Waker| slot.wake_later(waker);
                sending(waits, (core, lane), context, || slot.take(), arm)
            }
        }
    }
}

/// Waits for the outcome of a send, and sends what there are credits for meanwhile.
fn sending(
    waits: &mut Waits,
    (core, lane): (&Core, &Lane),
    context: &mut Context<'_>,
    mut find: impl FnMut() -> Option<Result<(), SendError>>,
    arm: impl FnMut(&Waker),
) -> Poll<Result<(), SendError>> {
    lane.send_more();
    let mut seen = 0;
    let find = || {
        core.send_due();
        lane.send_more_by_new_credits(&mut seen);
        find()
    };
    waits.poll_until(core, context, find, arm)
}
