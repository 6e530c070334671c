//! A request as a future, and the next message as one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use doorbell_core::nic::{Completion, WorkRequest};
use tokio::sync::{AcquireError, SemaphorePermit};

use super::{Message, Pair};
use crate::connect::Connection;
use crate::error::Failed;
use crate::hand::{AtHand, Hand};
use crate::progress::{Look, Shared, is_full};
use crate::waiting::{Waiting, attend};
use crate::wakers::Place;

type Room<'q> =
    Pin<Box<dyn Future<Output = Result<SemaphorePermit<'q>, AcquireError>> + Send + 'q>>;

/// A request that is carried out, and its completion. See
/// [`QueuePair::perform`](super::QueuePair::perform).
#[must_use = "a request is posted when it is first awaited"]
pub struct Operation<'q> {
    pair: &'q Pair,
    connection: &'q Connection,
    shared: &'q Shared,
    state: State<'q>,
    waiting: Waiting<'q>,
}

enum State<'q> {
    /// It was not posted yet.
    Held(Option<WorkRequest>),
    /// It waits for room in the queue.
    Waits(Option<WorkRequest>, Room<'q>),
    Posted(Slot<'q>),
}

/// The slot of a request that was posted.
struct Slot<'q> {
    pair: &'q Pair,
    index: u32,
    /// How many completions there had been at the last look.
    seen: u64,
    done: bool,
    /// The program's own number of it.
    id: u64,
}

impl Look for Slot<'_> {
    type Found = Completion;

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<Completion> {
        let completed = self.pair.completed();
        if completed == self.seen {
            return None;
        }
        self.seen = completed;
        let found = self.pair.take(self.index);
        self.done = found.is_some();
        found.map(|completion| Completion { id: self.id, ..completion })
    }

    fn register(&mut self, waker: &Waker) {
        self.pair.await_slot(self.index, waker);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.pair.abandon(self.index);
        }
    }
}

impl<'q> Operation<'q> {
    #[inline]
    pub(super) fn new(
        shared: &'q Shared,
        pair: &'q Pair,
        connection: &'q Connection,
        request: WorkRequest,
    ) -> Self {
        let (state, waiting) = (State::Held(Some(request)), Waiting::new(shared));
        Self { pair, connection, shared, state, waiting }
    }

    /// Posts the request, for which there is a permit, and awaits its completion.
    #[inline]
    fn post(
        &mut self,
        request: WorkRequest,
        permit: SemaphorePermit<'q>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Completion, Failed>> {
        let (seen, id) = (self.pair.completed(), request.id);
        let mut machine = self.shared.enter();
        let posted = self.pair.post(request, |queue| match &mut machine {
            Some(machine) => machine.posted(queue),
            None => queue.ring(),
        });
        let index = match posted {
            Ok(index) => index,
            Err(refused) => {
                if let Some(machine) = machine {
                    self.shared.release(machine);
                }
                if is_full(&refused.why) {
                    // What was completed is still being taken off the queue.
                    self.state = State::Held(Some(*refused.request));
                    return crate::progress::let_others_run(context);
                }
                return Poll::Ready(Err(Failed::of_request(refused, self.connection)));
            }
        };
        permit.forget();
        self.state = State::Posted(Slot { pair: self.pair, index, seen, done: false, id });
        let State::Posted(slot) = &mut self.state else { unreachable!("it was set just now") };
        let found = match machine {
            Some(machine) => self.waiting.poll_holding(machine, context, slot),
            None => {
                self.shared.ring();
                self.waiting.poll(context, slot)
            }
        };
        found.map(|found| finish(found, self.connection))
    }
}

/// What became of it, with the NIC let go.
#[inline]
fn finish(
    (completion, hand): (Completion, Hand<'_>),
    connection: &Connection,
) -> Result<Completion, Failed> {
    drop(hand);
    match completion.outcome {
        Ok(_) => Ok(completion),
        Err(why) => Err(Failed::of(why, completion.memory).because(connection)),
    }
}

impl Unpin for Operation<'_> {}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Operation");
        shown.field("qpn", &self.connection.qpn());
        match &self.state {
            State::Held(request) | State::Waits(request, _) => shown.field("request", request),
            State::Posted(slot) => shown.field("posted", &slot.id),
        };
        shown.finish_non_exhaustive()
    }
}

impl Future for Operation<'_> {
    type Output = Result<Completion, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::Held(request) = &mut this.state {
            let request = request.take().expect("a future that is done is not polled again");
            match this.pair.room.try_acquire() {
                Ok(permit) => return this.post(request, permit, context),
                Err(_) => {
                    // What gives room is progress: somebody must make it.
                    let room = attend(this.shared, this.pair.room.acquire());
                    this.state = State::Waits(Some(request), Box::pin(room));
                }
            }
        }
        match &mut this.state {
            State::Waits(request, room) => {
                let permit = ready!(room.as_mut().poll(context)).expect("it is never closed");
                let request = request.take().expect("it is taken once");
                this.post(request, permit, context)
            }
            State::Posted(slot) => {
                let found = ready!(this.waiting.poll(context, slot));
                Poll::Ready(finish(found, this.connection))
            }
            State::Held(_) => unreachable!("it was left above"),
        }
    }
}

/// The next message. See [`QueuePair::receive`](super::QueuePair::receive).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive<'q> {
    next: Next<'q>,
    connection: &'q Connection,
    waiting: Waiting<'q>,
}

struct Next<'q> {
    pair: &'q Pair,
    /// How many messages had come at the last look; none yet, before the first.
    seen: Option<u64>,
    place: Place,
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        self.pair.await_no_message(&mut self.place);
    }
}

impl Look for Next<'_> {
    type Found = Option<Completion>;

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<Option<Completion>> {
        let arrived = self.pair.arrived();
        if self.seen == Some(arrived) {
            return None;
        }
        self.seen = Some(arrived);
        self.pair.next()
    }

    fn register(&mut self, waker: &Waker) {
        self.pair.await_message(&mut self.place, waker);
    }
}

impl<'q> Receive<'q> {
    pub(super) fn new(shared: &'q Shared, pair: &'q Pair, connection: &'q Connection) -> Self {
        let next = Next { pair, seen: None, place: Place::default() };
        Self { next, connection, waiting: Waiting::new(shared) }
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
            Some(completion) => Message::of(completion).map_err(|why| why.because(this.connection)),
            None => Err(Failed::over(this.connection)),
        })
    }
}
