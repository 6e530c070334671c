//! What takes calls in: checks each, and runs its handler.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorbell_am as am;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::answer::{Answers, refuse};
use super::router::{Answered, Answering, Route, Router};
use super::sessions::Sessions;
use crate::context::Inherited;
use crate::message::{Body, Request};
use crate::status::Status;
use crate::wire::{self, CallHead, CallWords, Hello, HelloWords, VERSION, WELCOME, Welcome};

/// A server's methods and its state, which its Active Messages work on.
pub struct Core {
    pub router: Router,
    sessions: Mutex<Sessions>,
    /// The server's number, by which clients know whether it still knows what they called.
    number: u64,
    /// The most handlers that run at a time; calls beyond are refused.
    most: usize,
    /// The longest body that is taken.
    longest: usize,
    running: AtomicUsize,
    closing: AtomicBool,
    /// Told when the last handler ends while the server closes.
    idle: Notify,
    runtime: Handle,
}

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub running: usize,
    pub longest: usize,
    pub sessions: usize,
    pub remember: Duration,
}

impl Core {
    pub fn new(router: Router, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            router,
            sessions: Mutex::new(Sessions::new(limits.sessions, limits.remember)),
            number: rand(),
            most: limits.running,
            longest: limits.longest,
            running: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            idle: Notify::new(),
            runtime: Handle::current(),
        })
    }

    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Active Messages of a server.
    pub fn handlers(self: &Arc<Self>) -> am::Handlers {
        let [hello, call, cancel] = [0; 3].map(|_| self.clone());
        am::Handlers::new()
            .request(wire::HELLO, move |request, words| hello.welcome(request, words))
            .request(wire::CALL, move |request, words| call.call(request, words))
            .request(wire::CANCEL, move |request, [session, number]| {
                cancel.sessions().cancel(session, number);
                drop(request);
            })
    }

    fn welcome(&self, request: am::Request<'_>, words: HelloWords) {
        let Hello { version, client, session } = Hello::from_words(words);
        let opened = (version == VERSION)
            .then(|| self.sessions().open(client, session, rand(), request.peer()));
        let welcome = Welcome {
            version: VERSION,
            session: opened.flatten().unwrap_or(0),
            server: self.number,
            longest: self.longest as u64,
        };
        request.reply(WELCOME, welcome.words());
    }

    fn call(self: &Arc<Self>, mut request: am::Request<'_>, words: CallWords) {
        let head = CallHead::from_words(words);
        let payload = request.take_payload();
        match self.admit(&head, payload) {
            Err(status) => refuse(request, head.call, &status),
            Ok(Admitted { route, call, room }) if route.inline => {
                self.run_here(request, head, &route, call, room);
            }
            Ok(admitted) => request.spawn(|kept| admitted.run(head, kept)),
        }
    }

    /// Checks a call before its handler runs.
    fn admit(self: &Arc<Self>, head: &CallHead, payload: bytes::Bytes) -> Result<Admitted, Status> {
        let Some(route) = self.router.route(head.method) else {
            return Err(self.unknown(head.method));
        };
        let method = route.method;
        if head.schema != 0 && method.schema_number() != 0 && head.schema != method.schema_number()
        {
            return Err(Status::failed_precondition(format!(
                "the caller of {method} was built for another schema than the server, whose is `{}`: \
                 build both from the same definition",
                method.schema_text()
            )));
        }
        if self.closing.load(Ordering::Acquire) {
            return Err(Status::unavailable("the server is shutting down: call another one"));
        }
        let room = Room::take(self)?;
        // Whatever may run twice need not be remembered.
        if !method.is_idempotent() {
            self.sessions().begin(head.session, head.call)?;
        }
        let (metadata, body) = wire::split(head.flags.metadata, payload).map_err(|why| {
            Status::invalid_argument(format!("the request of {method} can't be read: {why}"))
        })?;
        let deadline = (head.timeout != 0)
            .then(|| Instant::now().checked_add(Duration::from_micros(head.timeout)))
            .flatten();
        let call = Request::with_parts(method, metadata, deadline, Body::Whole(body));
        Ok(Admitted { route: route.clone(), call, room })
    }

    /// The error of a method that the server does not have. The caller knows its name.
    #[cold]
    fn unknown(&self, number: u64) -> Status {
        let mut known: Vec<_> = self.router.methods().map(|method| method.path()).collect();
        known.sort_unstable();
        known.truncate(20);
        let known = known.join(", ");
        Status::unimplemented(format!(
            "the server has no method of that path (its number is {number:#018x}); it has {known}"
        ))
    }

    /// Runs a handler where its request was received, and as a task only if it has to wait.
    fn run_here(
        self: &Arc<Self>,
        request: am::Request<'_>,
        head: CallHead,
        route: &Route,
        call: Request<Body>,
        room: Room,
    ) {
        let _runtime = self.runtime.enter();
        let mut answering = Work::begin(route, call);
        match answering.poll_once() {
            Some(answered) => {
                drop(room);
                request.answers(head.call, answered);
            }
            None => request.spawn(|kept| answering.finish(head, kept, room)),
        }
    }

    /// Refuses further calls, and waits until all handlers that run have ended.
    pub async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        loop {
            let ended = self.idle.notified();
            if self.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// How many handlers run.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

/// A call that was checked.
struct Admitted {
    route: Route,
    call: Request<Body>,
    room: Room,
}

impl Admitted {
    async fn run(self, head: CallHead, kept: am::Kept) {
        let Self { route, call, room } = self;
        let mut answering = Work::begin(&route, call);
        match poll_now(&mut answering).await {
            Some(answered) => {
                drop(room);
                kept.answers(head.call, answered);
            }
            None => answering.finish(head, kept, room).await,
        }
    }
}

/// Polls work once, with the waker of the task.
async fn poll_now(work: &mut Work) -> Option<Answered> {
    std::future::poll_fn(|context| {
        Poll::Ready(match work.future.as_mut().poll(context) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => None,
        })
    })
    .await
}

/// The future of a handler that runs, which contains panics and lets calls inherit the deadline.
struct Work {
    future: Answering,
    deadline: Option<Instant>,
    method: &'static str,
}

impl Work {
    fn begin(route: &Route, call: Request<Body>) -> Self {
        let (deadline, method) = (call.deadline(), route.method.path());
        let handler = route.handler.clone();
        let inherited = Inherited { deadline };
        let future = async move { handler(call).await };
        let contained = AssertUnwindSafe(inherited.while_running(future)).catch_unwind();
        let future = contained
            .map(move |outcome| outcome.unwrap_or_else(|panic| Err(panicked(method, panic))));
        Self { future: Box::pin(future), deadline, method }
    }

    /// What the handler answers if it need not wait.
    fn poll_once(&mut self) -> Option<Answered> {
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => None,
        }
    }

    /// Runs the handler to its end, unless its caller's time is over or the caller gives it up, and
    /// answers.
    async fn finish(self, head: CallHead, kept: am::Kept, room: Room) {
        let Self { future, deadline, method } = self;
        let (stop, stopped) = AbortHandle::new_pair();
        let waiting = WaitingCall::note(&room.0, &head, stop);
        let limited = async move {
            match deadline {
                None => future.await,
                Some(deadline) => match tokio::time::timeout_at(deadline, future).await {
                    Ok(answered) => answered,
                    Err(_) => Err(Status::deadline_exceeded(format!(
                        "the handler of {method} was stopped when its caller's time was over"
                    ))),
                },
            }
        };
        let ended = pin!(Abortable::new(limited, stopped)).await;
        drop((waiting, room));
        let cancelled = || Err(Status::cancelled("the caller has given the call up"));
        kept.answers(head.call, ended.unwrap_or_else(|_| cancelled()));
    }
}

/// The status for a caller whose handler panicked.
#[cold]
fn panicked(method: &'static str, panic: Box<dyn std::any::Any + Send>) -> Status {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(method, text, "a handler panicked");
    Status::internal(format!("the handler of {method} panicked"))
}

/// A call whose handler waits, as its session knows it until this is dropped.
struct WaitingCall {
    core: Arc<Core>,
    session: u64,
    call: u64,
}

impl WaitingCall {
    fn note(core: &Arc<Core>, head: &CallHead, stop: AbortHandle) -> Self {
        core.sessions().waits(head.session, head.call, stop);
        Self { core: core.clone(), session: head.session, call: head.call }
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        self.core.sessions().ends(self.session, self.call);
    }
}

/// The place of a handler among those that may run at a time.
struct Room(Arc<Core>);

impl Room {
    fn take(core: &Arc<Core>) -> Result<Self, Status> {
        let room = Self(core.clone());
        let running = core.running.fetch_add(1, Ordering::SeqCst);
        if running >= core.most {
            return Err(Status::resource_exhausted(format!(
                "the server runs {} handlers already, which is its limit: call again later, or another \
                 server",
                core.most
            )));
        }
        Ok(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1
            && self.0.closing.load(Ordering::SeqCst)
        {
            self.0.idle.notify_waiters();
        }
    }
}

/// A number that nobody can guess, and not zero.
fn rand() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()).max(1)
}
