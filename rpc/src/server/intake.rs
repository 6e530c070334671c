//! What takes calls in: checks each, and has its handler run.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_am as am;
use tokio::time::Instant;

use super::answer::{Encoded, Way};
use super::queue::Waiting;
use super::router::Route;
use super::running::{Room, Running, stoppably};
use super::state::Core;
use crate::context::deadline_after;
use crate::message::{Body, Request};
use crate::meters;
use crate::random;
use crate::status::Status;
use crate::wire::{
    self, CallHead, CallWords, Hello, HelloWords, NO_METHOD, Received, VERSION, WELCOME, Welcome,
};

impl Core {
    /// The Active Messages of a server.
    pub fn handlers(self: &Arc<Self>) -> am::Handlers {
        let [hello, call, cancel] = [0; 3].map(|_| self.clone());
        let handlers = am::Handlers::new()
            .request(wire::HELLO, move |request, words| hello.welcome(request, words))
            .request(wire::CALL, move |request, words| call.call(request, words))
            .request(wire::CANCEL, move |request, [session, call]| {
                cancel.sessions().cancel(session, call);
                let given_up = Status::cancelled("the caller has given the call up");
                cancel.streams.end((session, call), &given_up);
                request.note_woken();
            });
        self.transfers.add_handlers(self.streams.add_handlers(handlers))
    }

    fn welcome(&self, request: am::Request<'_>, words: HelloWords) {
        let Hello { version, client, session } = Hello::from_words(words);
        let opened = (version == VERSION)
            .then(|| (request.peer(), self.transfers.share()))
            .and_then(|(peer, share)| self.sessions().open(client, session, random(), peer, share));
        let welcome = Welcome {
            version: VERSION,
            session: opened.unwrap_or(0),
            server: self.number,
            longest: self.limits.longest as u64,
            lines: self.number,
        };
        request.reply(WELCOME, welcome.words());
    }

    fn call(self: &Arc<Self>, mut request: am::Request<'_>, words: CallWords) {
        let head = CallHead::from_words(words);
        let payload = request.take_payload();
        let (route, room) = match self.admit(&head, &request) {
            Ok(admitted) => admitted,
            Err(status) => return refused(&status).answer_here(request, head.call),
        };
        let peer = request.peer();
        let (call, long) = match self.opened(&head, route, payload, &peer) {
            Ok(opened) => opened,
            Err(status) => return refused(&status).answer_here(request, head.call),
        };
        if is_inline(route, &head) {
            let mut running = Running::begin(self, peer, head, route, call, room);
            let _runtime = self.runtime.enter();
            if let Some(answer) = running.answer_here() {
                let _answered = running.over();
                return answer.answer_here(request, head.call);
            }
            return request.spawn(|kept| running.run(Way::Reply(kept)));
        }
        let (taken, route) = (Taken { head, call, peer, room }, route.clone());
        let waiting = Waiting::new(self);
        if head.flags.streams || long.is_some() {
            // What follows may take long, and is not to hold a credit of Active Messages meanwhile.
            request.note_woken();
            let way = Way::Reply(request.keep()).accept(head.call);
            self.runtime.spawn(self.clone().run_later(route, taken, long, waiting, way));
            return;
        }
        let core = self.clone();
        request.spawn(|kept| core.run_later(route, taken, None, waiting, Way::Reply(kept)));
    }

    /// Runs the handler of a call that was taken in, when a body that is too long for a message is
    /// here. The handler does not run if the call has waited for too long.
    async fn run_later(
        self: Arc<Self>,
        route: Route,
        taken: Taken,
        long: Option<usize>,
        waiting: Waiting,
        way: Way,
    ) {
        let Taken { head, call, peer, room } = taken;
        if let Err(status) = waiting.begins(call.deadline()) {
            return Box::pin(way.answer(&self, &peer, head, refused(&status), room)).await;
        }
        let Some(len) = long else {
            return Running::begin(&self, peer, head, &route, call, room).run(way).await;
        };
        let mut received = None;
        // These futures take kilobytes, which a task without a long body need not carry.
        Box::pin(stoppably(&self, &peer, head, async {
            let body = async {
                let line = self.lines.of(head.session).await?;
                let memory = self.share_of(head.session).lend(len).await;
                self.transfers.receive((head.session, head.call), &peer, &line, memory).await
            };
            received = Some(body.await);
        }))
        .await;
        match received {
            Some(Ok(body)) => {
                let call = call.map(|_| Body::Whole(body));
                Running::begin(&self, peer, head, &route, call, room).run(way).await;
            }
            Some(Err(status)) => {
                Box::pin(way.answer(&self, &peer, head, refused(&status), room)).await;
            }
            None => {}
        }
    }

    /// Checks a call before its handler runs: its method, its schema, whether it has begun before,
    /// and whether another handler may run, and begin in time.
    fn admit(
        self: &Arc<Self>,
        head: &CallHead,
        request: &am::Request<'_>,
    ) -> Result<(&Route, Room), Status> {
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
        let room = Room::take(self)?;
        if let Some(queue) = &self.queue {
            match is_inline(route, head) {
                true => queue.may_begin_inline(request.look(), Instant::now())?,
                false => queue.expects_in_time()?,
            }
        }
        self.sessions().begin(head.session, head.call, method.is_idempotent())?;
        Ok((route, room))
    }

    /// The request of a call, with its stream open if it has one, and the length of a body that
    /// follows.
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

    /// The error of a method that the server does not have. The caller knows the method's path.
    #[cold]
    fn unknown(&self) -> Status {
        let mut known: Vec<_> = self.router.methods().map(|method| method.path()).collect();
        known.sort_unstable();
        known.truncate(20);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Status::unimplemented(format!("{NO_METHOD}; it has {known}"))
    }
}

/// A call that was taken in.
struct Taken {
    head: CallHead,
    call: Request<Body>,
    peer: am::Peer,
    room: Room,
}

/// Whether the handler of a call runs where the call is received: not if a stream or a body
/// follows, which has to be waited for.
fn is_inline(route: &Route, head: &CallHead) -> bool {
    route.inline && !head.flags.streams && !head.flags.long
}

/// The answer to a call whose handler does not run.
#[cold]
fn refused(status: &Status) -> Encoded {
    meters::refused(status.code());
    Encoded::error(status)
}
