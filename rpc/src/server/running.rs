//! A call whose handler runs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorbell_am as am;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use tokio::time::Instant;
use tracing::Instrument;

use super::answer::{Encoded, Way};
use super::router::{Answered, Answering, Route};
use super::state::Core;
use crate::context::Inherited;
use crate::message::{Body, Request};
use crate::observed::Observed;
use crate::status::{Status, panic_text};
use crate::trace;
use crate::wire::CallHead;

/// How long a handler may hold the credit of Active Messages with which its call was sent. After
/// that the client is told that the call runs, and gets the credit back.
const HOLDS_CREDIT: Duration = Duration::from_millis(20);

/// A call whose handler runs: the handler's future, which contains panics, has calls inherit the
/// deadline and the trace, and tells how the call has ended; and what the answer needs.
pub struct Running {
    core: Arc<Core>,
    peer: am::Peer,
    head: CallHead,
    method: &'static str,
    deadline: Option<Instant>,
    future: Answering,
    /// What the handler has returned already.
    answer: Option<Encoded>,
    room: Room,
}

impl Running {
    /// Calls the handler; the future that it returns is not polled yet.
    pub fn begin(
        core: &Arc<Core>,
        peer: am::Peer,
        head: CallHead,
        route: &Route,
        call: Request<Body>,
        room: Room,
    ) -> Self {
        let (deadline, method) = (call.deadline(), route.method.path());
        let handler = route.handler.clone();
        let (span, trace) = trace::handle(&call, &peer);
        let observed = Observed::new(span, route.meters.clone(), deadline);
        let span = observed.span();
        let inherited = Inherited { deadline, trace };
        let future = inherited.clone().while_running(async move { handler(call).await });
        let contained = AssertUnwindSafe(future).catch_unwind();
        let future = contained.map(move |outcome| {
            let answer = outcome.unwrap_or_else(|panic| Err(panicked(method, &*panic)));
            observed.answered(answer, inherited)
        });
        let future = Box::pin(future.instrument(span));
        let core = core.clone();
        Self { core, peer, head, method, deadline, future, answer: None, room }
    }

    /// The answer, if the handler need not wait for anything and a message is enough for the
    /// answer.
    pub fn answer_here(&mut self) -> Option<Encoded> {
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(answered) => {
                let answer = Encoded::of(answered, self.peer.longest_payload());
                if !answer.is_followed() {
                    return Some(answer);
                }
                self.answer = Some(answer);
                None
            }
        }
    }

    /// The place of a call whose answer is there, given back for the caller's next call: the server
    /// waits for the answer to be sent until the returned place is dropped.
    pub fn over(mut self) -> Room {
        self.room.give_back();
        self.room
    }

    /// Runs the handler to its end and answers; unless the caller's time is over before, or the
    /// caller gives the call up.
    pub async fn run(mut self, way: Way) {
        if self.answer.is_none() {
            // Most handlers have their answer at once, and nothing need be prepared for a wait.
            let future = &mut self.future;
            let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context)));
            if let Poll::Ready(answered) = first.await {
                self.answer = Some(Encoded::of(answered, self.peer.longest_payload()));
            }
        }
        match (way, self.answer.take_if(|answer| !answer.is_followed())) {
            (Way::Reply(kept), Some(answer)) => {
                // The caller may call again as soon as it has the answer.
                self.room.give_back();
                answer.answer_kept(kept, self.head.call);
            }
            // These futures take kilobytes, which a task whose answer is here need not carry.
            (way, Some(answer)) => {
                let Self { core, peer, head, room, .. } = self;
                Box::pin(way.answer(&core, &peer, head, answer, room)).await;
            }
            (way, None) => Box::pin(self.run_stoppably(way)).await,
        }
    }

    /// As [`run`](Self::run), of a handler that waits, or of an answer that more follows: the
    /// session can stop it.
    async fn run_stoppably(self, way: Way) {
        let Self { core, peer, head, method, deadline, future, answer, room } = self;
        let work = async {
            let (way, answer) = match answer {
                Some(answer) => (way, answer),
                None => {
                    let (way, answered) = waited_for(future, way, head.call).await;
                    (way, Encoded::of(answered, peer.longest_payload()))
                }
            };
            way.answer(&core, &peer, head, answer, room).await;
        };
        stoppably(&core, &peer, head, async {
            let Some(deadline) = deadline else { return work.await };
            if tokio::time::timeout_at(deadline, work).await.is_err() {
                // The client has its own clock, and answers itself.
                tracing::debug!(method, "a handler was stopped: its caller's time is over");
            }
        })
        .await;
    }
}

/// Runs something for a call that the call's session can stop.
pub async fn stoppably(
    core: &Arc<Core>,
    peer: &am::Peer,
    head: CallHead,
    work: impl Future<Output = ()>,
) {
    let (stop, stopped) = AbortHandle::new_pair();
    let ticket = core.sessions().waits(head.session, head.call, peer, stop);
    let _stays = Stays { core, head, ticket };
    // Whoever has stopped the work need not be told.
    let _ = Abortable::new(work, stopped).await;
}

/// Waits for a handler, and gives the client its credit back if that takes long.
async fn waited_for(mut future: Answering, way: Way, call: u64) -> (Way, Answered) {
    match tokio::time::timeout(HOLDS_CREDIT, &mut future).await {
        Ok(answered) => (way, answered),
        Err(_) => {
            let way = way.accept(call);
            (way, future.await)
        }
    }
}

/// The status for a caller whose handler panicked.
#[cold]
fn panicked(method: &'static str, panic: &(dyn std::any::Any + Send)) -> Status {
    tracing::error!(method, text = panic_text(panic), "a handler panicked");
    Status::internal(format!("the handler of {method} panicked"))
}

/// A call that its session can stop, until this is dropped.
struct Stays<'c> {
    core: &'c Core,
    head: CallHead,
    ticket: u64,
}

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        self.core.sessions().ends(self.head.session, self.head.call, self.ticket);
    }
}

/// The place of a handler among those that may run at a time, and behind it among the calls whose
/// answers a server that shuts down waits for.
pub struct Room {
    core: Arc<Core>,
    /// Whether the place among the handlers was given back.
    is_back: bool,
}

impl Room {
    /// Takes a place among the handlers, and among the calls that are not answered.
    ///
    /// # Errors
    /// When as many handlers run as may, or the server shuts down.
    pub fn take(core: &Arc<Core>) -> Result<Self, Status> {
        let before = core.running.begins();
        let room = Self { core: core.clone(), is_back: false };
        // Behind the beginning, so that a server which shuts down either refuses the call or waits.
        if core.closing.load(Ordering::SeqCst) {
            return Err(Status::unavailable("the server is shutting down: call another one"));
        }
        if before >= core.limits.running {
            return Err(Status::resource_exhausted(format!(
                "the server runs {} handlers already, which is its limit: call again later, or another \
                 server",
                core.limits.running
            )));
        }
        Ok(room)
    }

    /// Gives the place among the handlers back, before the answer is sent: a caller that has its
    /// answer may call again at once.
    pub fn give_back(&mut self) {
        if !std::mem::replace(&mut self.is_back, true) {
            self.core.running.gives_back();
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.give_back();
        if self.core.running.ends() && self.core.closing.load(Ordering::SeqCst) {
            self.core.idle.notify_waiters();
        }
    }
}
