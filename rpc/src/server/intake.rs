//! Intake: receives the calls of clients, checks each, and has its handler run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am as am;
use tokio::time::Instant;

use super::answer::{Encoded, ReplyPath, refused};
use super::handling::Handling;
use super::leaving::cut_off;
use super::queue::Waiting;
use super::running::{Running, stoppably};
use super::slot::Slot;
use super::state::Core;
use super::task::{Taken, Task};
use crate::caller::Caller;
use crate::deadlines::deadline_after;
use crate::message::{Body, Request};
use crate::random;
use crate::router::Route;
use crate::status::{Code, Status};
use crate::wire::{
    self, CallHead, CallWords, Hello, HelloWords, NO_METHOD, Received, VERSION, WELCOME, Welcome,
};

impl Core {
    /// The handlers of Active Messages by which an endpoint receives what clients send.
    pub fn handlers(self: &Arc<Self>) -> am::Handlers {
        let [hello, call, cancel, left] = [0; 4].map(|_| self.clone());
        let handlers = am::Handlers::new()
            .request(wire::HELLO, move |request, words| hello.welcome(request, words))
            .request(wire::CALL, move |request, words| call.call(request, words))
            .request(wire::LEFT, move |request, [session]| {
                left.sessions().leaves(session);
                request.note_woken();
            })
            .request(wire::CANCEL, move |request, [session, call]| {
                cancel.sessions().cancel(session, call);
                let given_up = Status::cancelled("the caller has given the call up");
                cancel.streams.end((session, call), &given_up);
                request.note_woken();
            });
        self.transfers.add_handlers(self.streams.add_handlers(handlers))
    }

    /// Answers a client's hello, by a task: who the client is can't be asked in a handler of Active
    /// Messages.
    fn welcome(self: &Arc<Self>, request: am::Request<'_>, words: HelloWords) {
        let core = self.clone();
        request.spawn(|kept| async move {
            let welcome = core.welcome_of(&kept.peer(), Hello::from_words(words));
            kept.reply(WELCOME, welcome.words());
        });
    }

    fn welcome_of(&self, peer: &am::Peer, hello: Hello) -> Welcome {
        let Hello { version, client, session } = hello;
        let caller = Caller::of(peer);
        let share = self.transfers.share();
        let mut sessions = self.sessions();
        let session = match version {
            VERSION if self.closing.load(Ordering::SeqCst) => Welcome::LEAVES,
            VERSION => {
                let who = (peer.clone(), caller);
                sessions.open(client, session, random(), who, share).unwrap_or(0)
            }
            _ => 0,
        };
        Welcome {
            version: VERSION,
            session,
            server: self.number,
            longest: self.limits.longest as u64,
            bulk_service: self.number,
        }
    }

    fn call(self: &Arc<Self>, mut request: am::Request<'_>, words: CallWords) {
        let head = CallHead::from_words(words);
        let payload = request.take_payload();
        let (route, slot, caller) = match self.admit(&head, &request) {
            Ok(admitted) => admitted,
            Err(status) => return self.not_admitted(status).answer_here(request, head.call),
        };
        let peer = request.peer();
        let (mut call, long) = match self.opened(&head, route, payload, &peer) {
            Ok(opened) => opened,
            Err(status) => return refused(status).answer_here(request, head.call),
        };
        call.set_caller(caller);
        if is_inline(route, &head) {
            return self.run_here(request, (head, call), route, peer, slot);
        }
        let taken = Taken { head, call, peer, slot: slot.into_owned() };
        let waiting = Waiting::new(self.queue.as_ref());
        if head.flags.streams || long.is_some() {
            // A handler that waits for its request to stream in, or for its body, may take long,
            // and must not hold a credit of Active Messages meanwhile.
            request.note_woken();
            let way = ReplyPath::Reply(request.keep()).accept(head.call);
            let runs = self.clone().run_later(route.clone(), taken, long, waiting, way);
            self.runtime.spawn(runs);
            return;
        }
        let runs = |kept| Task::new(self, taken, waiting, ReplyPath::Reply(kept));
        if let Err(request) = request.try_spawn(runs) {
            refused(no_room()).answer_here(request, head.call);
        }
    }

    /// Runs a handler where its call was received. One that waits for something goes on as a task,
    /// as does an answer that does not fit a message.
    fn run_here(
        self: &Arc<Self>,
        request: am::Request<'_>,
        (head, call): (CallHead, Request<Body>),
        route: &Route,
        peer: am::Peer,
        slot: Slot<&Arc<Core>>,
    ) {
        let (deadline, method) = (call.deadline(), route.method.path());
        let _runtime = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        let (future, polled) = Handling::begin(route, call, &peer, &mut context);
        let answer = match polled {
            Poll::Pending => None,
            Poll::Ready(answered) => Some(Encoded::of(answered, peer.longest_payload())),
        };
        if let Some(answer) = answer.as_ref().filter(|answer| !answer.is_followed()) {
            // No other call is received before this returns, so the slot is dropped behind.
            return answer.answer_here(request, head.call);
        }
        let (core, slot) = (self.clone(), slot.into_owned());
        let running = Running { core, peer, head, method, deadline, future, answer, slot };
        // Without room, the handler is stopped that has begun.
        if let Err(request) = request.try_spawn(|kept| running.run(ReplyPath::Reply(kept))) {
            Encoded::error(&no_room()).answer_here(request, head.call);
        }
    }

    /// The answer to a call that is not admitted. A server that is shutting down tells that it does
    /// not admit any.
    #[cold]
    fn not_admitted(&self, status: Status) -> Encoded {
        let closing = status.code() == Code::Unavailable && self.closing.load(Ordering::SeqCst);
        refused(status).leaving(closing)
    }

    /// Runs the handler of a call that a stream or a long body follows, as a task of its own. A long
    /// body is received first, once the interceptors have let the call through. The handler does
    /// not run if the call has waited for too long, or until its deadline.
    async fn run_later(
        self: Arc<Self>,
        route: Route,
        taken: Taken,
        long: Option<usize>,
        waiting: Waiting,
        way: ReplyPath,
    ) {
        let Taken { head, call, peer, slot } = taken;
        let begins = waiting.begins(call.deadline());
        let begins = if self.is_stopped() { Err(cut_off()) } else { begins };
        if let Err(status) = begins {
            return Box::pin(way.answer(&self, &peer, head, refused(status), slot)).await;
        }
        let Some(len) = long else {
            return Running::begin(&self, peer, head, &route, call, slot).run(way).await;
        };
        let mut received = None;
        // The futures of a long body take kilobytes, which a task without one should not carry.
        Box::pin(stoppably(&self, &peer, head, async {
            let body = async {
                let call = route.responder.interceptors.see(call).await?;
                let connection = self.bulk.of(head.session).await?;
                let memory = self.share_of(head.session).lend(len).await;
                let memory = memory.map_err(|why| why.status("the request"))?;
                let key = (head.session, head.call);
                let body = self.transfers.receive(key, &peer, &connection, memory).await?;
                Ok(call.map(|_| Body::Whole(body)))
            };
            received = Some(body.await);
        }))
        .await;
        match received {
            Some(Ok(call)) => {
                let route = Route { responder: route.responder.after_interceptors(), ..route };
                Running::begin(&self, peer, head, &route, call, slot).run(way).await;
            }
            Some(Err(status)) => {
                Box::pin(way.answer(&self, &peer, head, refused(status), slot)).await;
            }
            None if self.is_stopped() => {
                Box::pin(way.answer(&self, &peer, head, refused(cut_off()), slot)).await;
            }
            None => {}
        }
    }

    /// Checks a call before its handler runs. Returns the route to its handler, the slot that the
    /// call has taken, and who calls.
    ///
    /// # Errors
    /// When the method is unknown or has another schema than the caller's, when the call has begun
    /// before and is not idempotent, or when too many handlers run or wait.
    fn admit<'c>(
        self: &'c Arc<Self>,
        head: &CallHead,
        request: &am::Request<'_>,
    ) -> Result<(&'c Route, Slot<&'c Arc<Self>>, Caller), Status> {
        let Some(route) = self.router.route(head.method) else {
            return Err(self.unknown());
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
        let mut slot = Slot::take(self)?;
        if let Some(queue) = &self.queue {
            match is_inline(route, head) {
                true => queue.may_begin_inline(request.look(), Instant::now())?,
                false => queue.expects_in_time()?,
            }
        }
        let again = method.is_idempotent();
        let begun = self.sessions().begin(head.session, head.call, again)?;
        slot.keeps_under_way(begun.under_way);
        Ok((route, slot, begun.caller))
    }

    /// Makes the request of a call from its payload, and opens its incoming stream if it has one.
    /// Also returns the length of a body that follows by RDMA, if one does.
    fn opened(
        &self,
        head: &CallHead,
        route: &Route,
        payload: Bytes,
        peer: &am::Peer,
    ) -> Result<(Request<Body>, Option<usize>), Status> {
        let method = route.method;
        let Received { metadata, body, long } =
            wire::split(head.flags, payload).map_err(|why| {
                Status::invalid_argument(format!("the request of {method} can't be read: {why}"))
            })?;
        let long = long.map(|len| self.transfers.check(len)).transpose();
        let long = long.map_err(|refused| refused.status(&format!("the request of {method}")))?;
        let timeout = (head.timeout != 0).then(|| Duration::from_micros(head.timeout));
        let deadline = timeout.map(deadline_after);
        let body = match head.flags.streams {
            false => Body::Whole(body),
            true => {
                let key = (head.session, head.call);
                let share = self.share_of(head.session);
                self.streams.open_incoming(key, peer, self.limits.longest, share)
            }
        };
        Ok((Request::with_parts(method, metadata, deadline, body), long))
    }

    /// The error of a call to a method that the server does not have. The server knows only the
    /// number of the method's path; the caller adds the path.
    #[cold]
    fn unknown(&self) -> Status {
        let mut known: Vec<_> = self.router.methods().map(|method| method.path()).collect();
        known.sort_unstable();
        known.truncate(20);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Status::unimplemented(format!("{NO_METHOD}; it has {known}"))
    }
}

/// Whether the handler of a call runs where the call is received. A handler does not if a stream or
/// a long body follows the call, which must be waited for.
fn is_inline(route: &Route, head: &CallHead) -> bool {
    route.inline && !head.flags.streams && !head.flags.long
}

/// The status of a call for whose handler the endpoint of Active Messages has no room.
#[cold]
fn no_room() -> Status {
    Status::resource_exhausted(
        "the server has as many handlers and answers under way as an endpoint may have: make fewer \
         calls at a time, or have more servers",
    )
}
