//! The handlers that run: futures that one task polls, one after the other.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use doorbell_verbs::floor::locked;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::error::HandlerError;
use super::hub::Work;
use super::id::StreamId;
use super::inbox::{Ended, Inbox};
use super::incoming::Incoming;
use super::link::Link;

/// The future of a handler.
type Handling = Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send>>;

/// A function of the program that handles messages.
pub type Handler = Box<dyn Fn(Incoming) -> Handling + Send + Sync>;

/// The handlers of an endpoint, by the numbers of their streams.
pub type Handlers = HashMap<u64, (StreamId, Handler)>;

/// The handlers that run.
pub struct Runner {
    handlers: Handlers,
    /// Handlers that have not run yet.
    begun: Mutex<Vec<Running>>,
    running: Mutex<FuturesUnordered<Running>>,
    /// Wakes the task that runs handlers.
    waker: Waker,
}

/// A handler that runs, on its message.
struct Running {
    handling: Handling,
    inbox: Arc<Inbox>,
    link: Arc<Link>,
}

impl Runner {
    pub fn new(handlers: Handlers, work: &Arc<Work>) -> Self {
        let waker = Waker::from(work.clone());
        Self { handlers, begun: Mutex::default(), running: Mutex::default(), waker }
    }

    /// Returns whether there is a handler for a stream.
    pub fn knows(&self, stream: u64) -> bool {
        self.handlers.contains_key(&stream)
    }

    /// Begins the handler of a message, which runs when handlers are run next.
    pub fn begin(&self, inbox: &Arc<Inbox>, link: &Arc<Link>) {
        let Some((stream, handler)) = self.handlers.get(&inbox.stream) else { return };
        let incoming = Incoming::new(inbox, link, *stream);
        let called = catch_unwind(AssertUnwindSafe(|| handler(incoming)));
        match called {
            Ok(handling) => {
                let running = Running { handling, inbox: inbox.clone(), link: link.clone() };
                locked(&self.begun).push(running);
            }
            Err(_) => link.settle(inbox.slot(), inbox.finish(Ended::Panicked)),
        }
    }

    /// Runs all handlers that can go on, until each waits for something. If another thread runs
    /// them already, this waits for that thread first. Called by a handler, this has them run when
    /// that handler waits.
    pub fn run(&self) {
        let Some(_runs) = Runs::begin() else { return self.waker.wake_by_ref() };
        let mut running = locked(&self.running);
        let mut context = Context::from_waker(&self.waker);
        running.extend(std::mem::take(&mut *locked(&self.begun)));
        while let Poll::Ready(Some(())) = running.poll_next_unpin(&mut context) {}
    }

    /// Drops the futures of all handlers. If a handler does that, it runs to its next wait, and is
    /// not dropped before the endpoint is.
    pub fn close(&self) {
        let begun = std::mem::take(&mut *locked(&self.begun));
        let running = self.running.try_lock().map(|mut running| std::mem::take(&mut *running));
        drop((begun, running));
    }
}

thread_local! {
    /// A flag that is set while the thread runs handlers.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// A thread that runs handlers, until this is dropped.
struct Runs;

impl Runs {
    /// Notes that this thread runs handlers, unless it does already.
    fn begin() -> Option<Self> {
        (!RUNS.replace(true)).then_some(Self)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

impl Future for Running {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let handling = &mut self.handling;
        let ended = match catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => Ended::Returned,
            Ok(Poll::Ready(Err(why))) => Ended::Error(why.to_string()),
            Err(_) => Ended::Panicked,
        };
        self.link.settle(self.inbox.slot(), self.inbox.finish(ended));
        Poll::Ready(())
    }
}
