//! Futures that wait for the next completion.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use doorbell_core::nic::{self, Completion, CompletionQueueId};

use crate::control::ControlOp;
use crate::dispatch::ReaderWaker;
use crate::progress::{HeldNic, Look, NicGuard, ProgressEngine};
use crate::waiting::Waiting;

/// The head of a completion queue, as the look of a wait.
pub(super) struct Head<'q> {
    pub queue: &'q mut nic::CompletionQueue,
    pub id: CompletionQueueId,
    pub reader: &'q ReaderWaker,
    pub engine: &'q ProgressEngine,
}

impl Look for Head<'_> {
    /// The completion itself stays in the queue, where the program reads it. Moving it through all
    /// layers of a wait would store and load it in pieces of different sizes, for which processors
    /// stall.
    type Output = ();

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        self.queue.peek().map(|_| ())
    }

    fn register(&mut self, waker: &Waker) {
        self.reader.set(waker);
        self.engine.operations.add(ControlOp::ArmCompletions(self.id));
    }
}

/// The future of [`CompletionQueue::completion`](crate::CompletionQueue::completion), which takes
/// the next completion.
#[must_use = "a future does nothing unless it is awaited"]
pub struct NextCompletion<'q> {
    pub(super) head: Head<'q>,
    pub(super) waiting: Waiting<'q>,
}

impl fmt::Debug for NextCompletion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextCompletion").field(&self.head.id).finish()
    }
}

impl Future for NextCompletion<'_> {
    type Output = Completion;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let Self { head, waiting } = &mut *self;
        let ((), hand) = ready!(waiting.poll(context, head));
        let completion = head.queue.take();
        // A request that waited for room in the completion queue may leave when the NIC is
        // released.
        drop(hand);
        Poll::Ready(completion)
    }
}

/// The future of [`Nic::until_completion`](crate::Nic::until_completion), which leaves the
/// completion in the queue.
#[must_use = "a future does nothing unless it is awaited"]
pub struct UntilCompletion<'n, 'q> {
    pub(super) head: Head<'q>,
    pub(super) waiting: Waiting<'n>,
}

impl fmt::Debug for UntilCompletion<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UntilCompletion").field(&self.head.id).finish()
    }
}

impl<'n> Future for UntilCompletion<'n, '_> {
    type Output = NicGuard<'n>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NicGuard<'n>> {
        let Self { head, waiting } = &mut *self;
        waiting.poll(context, head).map(|((), hand)| hand)
    }
}
