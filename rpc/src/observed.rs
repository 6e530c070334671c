//! Observing calls from beginning to end, however they end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::Instant;
use tracing::Span;

use crate::context::Inherited;
use crate::message::{Body, Pieces, Response};
use crate::meters::{Meters, Timed};
use crate::status::{Code, Status};
use crate::trace::CallSpan;

/// A call whose end is reported to its span and to its method's meters. A call that is dropped
/// before its end counts as cancelled, or as too late if its deadline has passed.
#[derive(Debug)]
pub struct Observed {
    span: CallSpan,
    timed: Timed,
    deadline: Option<Instant>,
    has_ended: bool,
}

impl Observed {
    /// Begins to observe a call.
    pub fn new(span: CallSpan, meters: Meters, deadline: Option<Instant>) -> Self {
        Self { span, timed: meters.begin(), deadline, has_ended: false }
    }

    /// Runs a step of the call in its span.
    pub fn in_span<T>(&self, step: impl FnOnce() -> T) -> T {
        if self.span.0.is_disabled() { step() } else { self.span.0.in_scope(step) }
    }

    /// The span of the call, in which the call's future is to run.
    pub fn span(&self) -> Span {
        self.span.0.clone()
    }

    /// Whether anything is told of the call's end.
    fn is_seen(&self) -> bool {
        Meters::ARE_KEPT || !self.span.0.is_disabled()
    }

    fn end(&mut self, code: Code) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.span.end(code);
            self.timed.end(code);
        }
    }

    /// Reports the end of the call when its answer is there; if the answer is a stream, when that
    /// ends. Whatever produces the stream inherits what the call's handler does.
    pub fn answered(
        mut self,
        answer: Result<Response<Body>, Status>,
        inherited: Inherited,
    ) -> Result<Response<Body>, Status> {
        match answer {
            Ok(response) if matches!(response.get_ref(), Body::Stream(_)) => {
                if !self.is_seen() && inherited.is_empty() {
                    return Ok(response);
                }
                let follow = |body: Body| {
                    Body::stream(Followed { pieces: body.pieces(), inherited, call: self })
                };
                Ok(response.map(follow))
            }
            answer => {
                self.end(answer.as_ref().err().map_or(Code::Ok, Status::code));
                answer
            }
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if self.has_ended || !self.is_seen() {
            return;
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        self.end(if is_late { Code::DeadlineExceeded } else { Code::Cancelled });
    }
}

/// The stream of an answer, whose end is the end of the call.
struct Followed {
    pieces: Pieces,
    inherited: Inherited,
    call: Observed,
}

impl Stream for Followed {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let next = this.call.in_span(|| {
            this.inherited.clone().while_polling(|| this.pieces.as_mut().poll_next(context))
        });
        match &next {
            Poll::Ready(None) => this.call.end(Code::Ok),
            Poll::Ready(Some(Err(status))) => this.call.end(status.code()),
            _ => {}
        }
        next
    }
}
