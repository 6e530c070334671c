//! The next message as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::message::Message;
use crate::connect::Connection;
use crate::dispatch::{Arrival, Dispatcher};
use crate::error::Failed;
use crate::progress::{HeldNic, Look, ProgressEngine};
use crate::sync::wakers::Place;
use crate::waiting::Waiting;

/// The future of the next message. See [`QueuePair::receive`](super::QueuePair::receive).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive<'q> {
    next: Next<'q>,
    connection: &'q Connection,
    waiting: Waiting<'q>,
}

struct Next<'q> {
    dispatcher: &'q Dispatcher,
    /// The number of messages at the last look, or nothing before the first look.
    seen: Option<u64>,
    place: Place,
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        self.dispatcher.await_no_message(&mut self.place);
    }
}

impl Look for Next<'_> {
    type Output = Arrival;

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<Arrival> {
        let arrived = self.dispatcher.arrived();
        if self.seen == Some(arrived) {
            return None;
        }
        self.seen = Some(arrived);
        self.dispatcher.next()
    }

    fn register(&mut self, waker: &Waker) {
        self.dispatcher.await_message(&mut self.place, waker);
    }
}

impl<'q> Receive<'q> {
    pub(super) fn new(
        engine: &'q ProgressEngine,
        dispatcher: &'q Dispatcher,
        connection: &'q Connection,
    ) -> Self {
        let next = Next { dispatcher, seen: None, place: Place::default() };
        Self { next, connection, waiting: Waiting::new(engine) }
    }
}

impl fmt::Debug for Receive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive").field("qpn", &self.connection.qpn()).finish_non_exhaustive()
    }
}

impl Future for Receive<'_> {
    type Output = Result<Message, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (found, hand) = ready!(this.waiting.poll(context, &mut this.next));
        drop(hand);
        Poll::Ready(match found {
            Arrival::Message(completion) => {
                Message::of(completion).map_err(|why| why.because(this.connection.link()))
            }
            Arrival::Over => Err(Failed::over(this.connection.link())),
        })
    }
}
