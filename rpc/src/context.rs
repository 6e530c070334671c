//! The context of a call that a handler works on, from which calls that the handler makes inherit.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::trace::TraceContext;

/// What calls inherit that are made while a handler works on a call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inherited {
    /// When the caller of the handler stops waiting.
    pub deadline: Option<Instant>,
    /// The place of the handler in a trace.
    pub trace: Option<TraceContext>,
}

tokio::task_local! {
    static INHERITED: Inherited;
}

impl Inherited {
    /// Runs a handler's future, whose calls inherit this.
    pub async fn while_running<F: Future>(self, future: F) -> F::Output {
        INHERITED.scope(self, future).await
    }

    /// Runs a step of what a handler has begun, whose calls inherit this.
    pub fn while_polling<T>(self, step: impl FnOnce() -> T) -> T {
        INHERITED.sync_scope(self, step)
    }

    /// Whether there is nothing to inherit.
    pub fn is_empty(&self) -> bool {
        self.deadline.is_none() && self.trace.is_none()
    }

    /// What calls inherit that the running task makes: nothing outside a handler.
    pub fn here() -> Self {
        INHERITED.try_with(Clone::clone).unwrap_or_default()
    }
}

/// When the caller of the handler that the running task belongs to stops waiting: `None` if it
/// waits for ever, or if the task works on no call.
#[must_use]
pub fn deadline() -> Option<Instant> {
    Inherited::here().deadline
}

/// The trace context of the running task: that of the call whose handler the task belongs to, or
/// the one within whose [scope](TraceContext::scope) the task runs. Calls that the task makes
/// inherit it.
#[must_use]
pub fn trace_context() -> Option<TraceContext> {
    Inherited::here().trace
}

impl TraceContext {
    /// Runs a future, whose calls inherit this context: for programs that begin traces, and for
    /// tasks that a handler starts, which inherit nothing by themselves.
    ///
    /// ```
    /// use doorbell::rpc::{TraceContext, trace_context};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let context = TraceContext::root();
    /// let inside = context.clone().scope(async { trace_context() }).await;
    /// assert_eq!(inside, Some(context));
    /// assert_eq!(trace_context(), None);
    /// # }
    /// ```
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        Inherited { trace: Some(self), ..Inherited::here() }.while_running(future).await
    }
}

/// The longest time that a deadline can be away, which stands for longer ones.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The deadline of what begins now and has a time.
pub(crate) fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

/// The earlier of two deadlines.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
