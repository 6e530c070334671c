//! The context of the call that a handler works on, which calls made by the handler inherit.

use std::future::Future;

use tokio::time::Instant;

use crate::trace::TraceContext;

/// The deadline and the trace context that calls made by a handler inherit.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inherited {
    /// The deadline of the handler's caller; `None` if the caller waits for ever.
    pub deadline: Option<Instant>,
    /// The trace context of the handler.
    pub trace: Option<TraceContext>,
}

tokio::task_local! {
    static INHERITED: Inherited;
}

impl Inherited {
    /// Runs a handler's future. Calls that the future makes inherit this.
    pub async fn while_running<F: Future>(self, future: F) -> F::Output {
        INHERITED.scope(self, future).await
    }

    /// Runs a step of what a handler has begun. Calls made in the step inherit this.
    pub fn while_polling<T>(self, step: impl FnOnce() -> T) -> T {
        INHERITED.sync_scope(self, step)
    }

    /// Returns whether there is neither a deadline nor a trace context to inherit.
    pub fn is_empty(&self) -> bool {
        self.deadline.is_none() && self.trace.is_none()
    }

    /// The deadline that calls of the running task inherit, and whether they inherit a trace.
    pub fn deadline_here() -> (Option<Instant>, bool) {
        let here = |inherited: &Self| (inherited.deadline, inherited.trace.is_some());
        INHERITED.try_with(here).unwrap_or_default()
    }

    /// The deadline and the trace context that calls of the running task inherit. Both are empty
    /// outside of a handler.
    pub fn here() -> Self {
        INHERITED.try_with(Clone::clone).unwrap_or_default()
    }
}

/// The deadline of the caller whose call the running task handles; `None` if the caller waits for
/// ever, or the task handles no call.
#[must_use]
pub fn deadline() -> Option<Instant> {
    INHERITED.try_with(|inherited| inherited.deadline).ok().flatten()
}

/// The trace context of the running task. Within a handler that is the context of the call, and
/// within a [scope](TraceContext::scope) the context of that scope. Calls that the task makes
/// inherit the context.
#[must_use]
pub fn trace_context() -> Option<TraceContext> {
    Inherited::here().trace
}

impl TraceContext {
    /// Runs a future whose calls inherit this context. For programs that begin traces, and for
    /// tasks that a handler starts, since those inherit nothing by themselves.
    ///
    /// ```
    /// use doorbell_rpc::{TraceContext, trace_context};
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
