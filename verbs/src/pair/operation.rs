//! A request as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use doorbell_core::nic::{Completion, PostError, WorkRequest};
use tokio::sync::{AcquireError, SemaphorePermit};

use crate::connect::Connection;
use crate::dispatch::Dispatcher;
use crate::error::Failed;
use crate::progress::{HeldNic, Look, NicGuard, ProgressEngine, yield_to_any};
use crate::waiting::{Waiting, with_progress};

type Room<'q> =
    Pin<Box<dyn Future<Output = Result<SemaphorePermit<'q>, AcquireError>> + Send + 'q>>;

/// The future of a request, which posts the request and yields its completion. See
/// [`QueuePair::perform`](super::QueuePair::perform).
#[must_use = "a request is posted when it is first awaited"]
pub struct Operation<'q> {
    dispatcher: &'q Dispatcher,
    connection: &'q Connection,
    engine: &'q ProgressEngine,
    state: State<'q>,
    waiting: Waiting<'q>,
}

enum State<'q> {
    /// The request was not posted yet.
    Held(Option<WorkRequest>),
    /// The request waits for room in the queue.
    Waits(Option<WorkRequest>, Room<'q>),
    Posted(Slot<'q>),
}

/// The slot of a posted request.
struct Slot<'q> {
    dispatcher: &'q Dispatcher,
    index: u32,
    /// The number of completions at the last look.
    seen: u64,
    done: bool,
    /// The program's number of the request.
    id: u64,
}

impl Look for Slot<'_> {
    type Output = Completion;

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<Completion> {
        let completed = self.dispatcher.completed();
        if completed == self.seen {
            return None;
        }
        self.seen = completed;
        let found = self.dispatcher.take(self.index);
        self.done = found.is_some();
        found.map(|completion| Completion { id: self.id, ..completion })
    }

    fn register(&mut self, waker: &Waker) {
        self.dispatcher.await_slot(self.index, waker);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.dispatcher.abandon(self.index);
        }
    }
}

impl<'q> Operation<'q> {
    #[inline]
    pub(super) fn new(
        engine: &'q ProgressEngine,
        dispatcher: &'q Dispatcher,
        connection: &'q Connection,
        request: WorkRequest,
    ) -> Self {
        let (state, waiting) = (State::Held(Some(request)), Waiting::new(engine));
        Self { dispatcher, connection, engine, state, waiting }
    }

    /// Posts the request, for which there is a permit, and looks for its completion.
    #[inline]
    fn post(
        &mut self,
        request: WorkRequest,
        permit: SemaphorePermit<'q>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Completion, Failed>> {
        let (seen, id) = (self.dispatcher.completed(), request.id);
        let mut adapter = self.engine.enter();
        let posted = self.dispatcher.post(request, |queue| match &mut adapter {
            Some(adapter) => adapter.posted(queue),
            None => queue.ring(),
        });
        let index = match posted {
            Ok(index) => index,
            Err(refused) => {
                if let Some(adapter) = adapter {
                    self.engine.release(adapter);
                }
                if is_full(&refused.why) {
                    // The NIC is still taking completed requests off the queue.
                    self.state = State::Held(Some(*refused.request));
                    return yield_to_any(context);
                }
                return Poll::Ready(Err(Failed::of_request(refused, self.connection.link())));
            }
        };
        permit.forget();
        self.state =
            State::Posted(Slot { dispatcher: self.dispatcher, index, seen, done: false, id });
        let State::Posted(slot) = &mut self.state else { unreachable!("it was set just now") };
        let found = match adapter {
            Some(adapter) => self.waiting.poll_holding(adapter, context, slot),
            None => {
                self.engine.ring();
                self.waiting.poll(context, slot)
            }
        };
        found.map(|found| finish(found, self.connection))
    }
}

/// Releases the NIC, and returns the outcome of the request.
#[inline]
fn finish(
    (completion, hand): (Completion, NicGuard<'_>),
    connection: &Connection,
) -> Result<Completion, Failed> {
    drop(hand);
    match completion.outcome {
        Ok(_) => Ok(completion),
        Err(why) => Err(Failed::of(why, completion.memory).because(connection.link())),
    }
}

/// Returns whether a request was refused since a queue is full.
fn is_full(why: &PostError) -> bool {
    matches!(why, PostError::Full { .. } | PostError::SharedFull { .. })
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
            let request = request.take().expect("a completed future must not be polled again");
            match this.dispatcher.room.try_acquire() {
                Ok(permit) => return this.post(request, permit, context),
                Err(_) => {
                    // Room appears as the NIC makes progress, so this future must make some.
                    let room = with_progress(this.engine, this.dispatcher.room.acquire());
                    this.state = State::Waits(Some(request), Box::pin(room));
                }
            }
        }
        match &mut this.state {
            State::Waits(request, room) => {
                let permit =
                    ready!(room.as_mut().poll(context)).expect("the semaphore is never closed");
                let request = request.take().expect("the request is taken once");
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
