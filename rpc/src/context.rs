//! The context of a call that a handler works on, from which calls that the handler makes inherit.

use std::future::Future;

use tokio::time::Instant;

/// What calls inherit that are made while a handler works on a call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inherited {
    /// When the caller of the handler stops waiting.
    pub deadline: Option<Instant>,
}

tokio::task_local! {
    static INHERITED: Inherited;
}

impl Inherited {
    /// Runs a handler's future, whose calls inherit this.
    pub async fn while_running<F: Future>(self, future: F) -> F::Output {
        INHERITED.scope(self, future).await
    }

    /// What calls inherit that the running task makes: nothing outside a handler.
    pub fn here() -> Self {
        INHERITED.try_with(Clone::clone).unwrap_or_default()
    }
}

/// When the caller of the handler that the running task belongs to stops waiting: `None` if it waits for
/// ever, or if the task works on no call.
#[must_use]
pub fn deadline() -> Option<Instant> {
    Inherited::here().deadline
}

/// The earlier of two deadlines.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
