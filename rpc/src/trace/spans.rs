//! The spans of calls, which `tracing` subscribers see.

use std::fmt::Display;

use tracing::Span;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;

use super::TraceContext;
use crate::message::{Body, Request};
use crate::status::Code;

/// The span of a call: `call` at a client, or `handle` at a server. If no subscriber is interested,
/// the span is disabled, and costs only a check of that.
#[derive(Debug)]
pub struct CallSpan(pub Span);

/// Makes a span of a call, at the level and with the fields that all of these spans have.
macro_rules! span {
    ($($parent:ident: $none:expr,)? $name:literal, $method:expr, $peer:expr) => {
        tracing::debug_span!(
            target: "doorbell_rpc::trace",
            $($parent: $none,)?
            $name,
            method = $method,
            peer = %$peer,
            code = Empty,
            trace_id = Empty,
            span_id = Empty,
            parent_id = Empty,
        )
    };
}

/// Whether a subscriber may be interested in the spans of calls. If none is, there is nothing to be
/// told.
#[inline]
pub fn may_be_seen() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Begins the span `call` of a request to the server `peer`. Returns the span, and the trace
/// context that must be added to the request's metadata, if any.
///
/// A context in the request's metadata takes precedence over the inherited one. A span that a
/// subscriber is interested in becomes a child of that context, or the root of a trace. Without an
/// interested subscriber, the context is passed on unchanged.
pub fn call(
    request: &Request<Body>,
    peer: &impl Display,
    inherited: Option<TraceContext>,
) -> (CallSpan, Option<TraceContext>) {
    let span = CallSpan(span!("call", request.method().path(), peer));
    let given = TraceContext::from_metadata(request.metadata());
    if span.0.is_disabled() {
        return (span, inherited.filter(|_| given.is_none()));
    }
    let context = span.begin(given.or(inherited));
    (span, Some(context))
}

/// Begins the span `handle` of a request that came from `peer`. Returns the span, and the trace
/// context that calls of the handler inherit.
pub fn handle(request: &Request<Body>, peer: &impl Display) -> (CallSpan, Option<TraceContext>) {
    if !may_be_seen() {
        let metadata = request.metadata();
        let given = || TraceContext::from_metadata(metadata);
        return (CallSpan::none(), if metadata.is_empty() { None } else { given() });
    }
    // Whatever task happens to receive a request has nothing to do with it.
    let span = CallSpan(span!(parent: None, "handle", request.method().path(), peer));
    let given = TraceContext::from_metadata(request.metadata());
    if span.0.is_disabled() {
        return (span, given);
    }
    let context = span.begin(given);
    (span, Some(context))
}

impl CallSpan {
    /// A span that nobody is told of.
    pub fn none() -> Self {
        Self(Span::none())
    }

    /// Records the numbers of the span, as a child of `parent` or as the root of a trace. Returns
    /// the context of the span.
    fn begin(&self, parent: Option<TraceContext>) -> TraceContext {
        let context = parent.as_ref().map_or_else(TraceContext::root, TraceContext::child);
        self.0.record("trace_id", format_args!("{:032x}", context.trace_id()));
        self.0.record("span_id", format_args!("{:016x}", context.span_id()));
        if let Some(parent) = parent {
            self.0.record("parent_id", format_args!("{:016x}", parent.span_id()));
        }
        context
    }

    /// Records the code with which the call has ended.
    pub fn end(&self, code: Code) {
        if !self.0.is_disabled() {
            self.0.record("code", format_args!("{code}"));
        }
    }
}
