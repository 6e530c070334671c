//! A handler's future, and what it runs in.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use doorbell_am as am;

use crate::context::Inherited;
use crate::message::{Body, Request};
use crate::observed::Observed;
use crate::router::{Answered, Answering, Responder, Route};
use crate::status::{Status, panic_text};
use crate::trace;

/// The future of a call's answer. The handler is called when this is first polled, and its future
/// has the only box.
///
/// Whatever runs of the handler does so in the span of the call, and calls that it makes inherit
/// its deadline and trace. A panic becomes a status, and the end of the call is recorded in its
/// span and meters.
pub struct Handling {
    stage: Stage,
    /// The observer that is told of the handler's end, until the handler has ended.
    observed: Option<Observed>,
    inherited: Inherited,
    method: &'static str,
}

enum Stage {
    /// The handler was not called yet.
    Begins(Responder, Request<Body>),
    Runs(Answering),
    Over,
}

impl Handling {
    /// The future of the handler of a route, for a call that a peer has made.
    pub fn new(route: &Route, call: Request<Body>, peer: &am::Peer) -> Self {
        let mut handling = Self::of(route, &call, peer);
        handling.stage = Stage::Begins(route.responder.clone(), call);
        handling
    }

    fn of(route: &Route, call: &Request<Body>, peer: &am::Peer) -> Self {
        let (span, trace) = trace::handle(call, peer);
        let deadline = call.deadline();
        let observed = Some(Observed::new(span, route.meters.clone(), deadline));
        let inherited = Inherited { deadline, trace };
        Self { stage: Stage::Over, observed, inherited, method: route.method.path() }
    }

    /// Calls the handler of a route for a call that a peer has made, and polls its future once.
    pub fn begin(
        route: &Route,
        call: Request<Body>,
        peer: &am::Peer,
        context: &mut Context<'_>,
    ) -> (Self, Poll<Answered>) {
        let mut handling = Self::of(route, &call, peer);
        let polled = handling.run(|stage| {
            *stage = Stage::Runs(route.responder.begin(call));
            stage.poll(context)
        });
        (handling, polled)
    }

    /// Takes a step of the handler, which may be its last.
    fn run(&mut self, step: impl FnOnce(&mut Stage) -> Poll<Answered>) -> Poll<Answered> {
        let answered = match self.within(step) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answered)) => answered,
            Err(panic) => {
                drop(self.within(|stage| *stage = Stage::Over));
                Err(panicked(self.method, &*panic))
            }
        };
        let observed = self.observed.take().expect("it is polled until it is ready");
        Poll::Ready(observed.answered(answered, std::mem::take(&mut self.inherited)))
    }

    /// Runs a step in what the handler runs in.
    fn within<T>(&mut self, step: impl FnOnce(&mut Stage) -> T) -> Result<T, Panic> {
        let Self { stage, observed, inherited, .. } = self;
        let run = || {
            let step = AssertUnwindSafe(|| step(stage));
            catch_unwind(|| inherited.clone().while_polling(step))
        };
        match observed {
            Some(observed) => observed.in_span(run),
            None => run(),
        }
    }
}

type Panic = Box<dyn Any + Send>;

impl Stage {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answered> {
        if let Self::Begins(..) = self
            && let Self::Begins(responder, call) = std::mem::replace(self, Self::Over)
        {
            *self = Self::Runs(responder.begin(call));
        }
        let Self::Runs(future) = self else { unreachable!("it is polled until it is ready") };
        let answered = ready!(future.as_mut().poll(context));
        *self = Self::Over;
        Poll::Ready(answered)
    }
}

impl Future for Handling {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        self.run(|stage| stage.poll(context))
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        if let Stage::Runs(_) = self.stage {
            drop(self.within(|stage| *stage = Stage::Over));
        }
    }
}

/// The status for the caller of a handler that panicked.
#[cold]
fn panicked(method: &'static str, panic: &(dyn Any + Send)) -> Status {
    tracing::error!(method, text = panic_text(panic), "a handler panicked");
    Status::internal(format!("the handler of {method} panicked"))
}
