//! The kind of handler that a thread runs, and running handlers so that it is known.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use crate::costs::{Cost, span};
use crate::shared::{Counters, contained};

/// The kind of handler that a thread runs at the moment, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The thread runs no handler.
    NoHandler,
    /// The thread runs the handler of a message that came alone.
    Alone,
    /// The thread runs the handler of one of several messages, whose answers leave together.
    OneOfSeveral,
}

thread_local! {
    static RUNS: Cell<Runs> = const { Cell::new(Runs::NoHandler) };
}

/// Returns whether this thread runs a handler, which may not send. Public for layers of this
/// workspace that stand on Active Messages.
#[doc(hidden)]
#[inline]
pub fn handles() -> bool {
    RUNS.get() != Runs::NoHandler
}

/// Returns whether this thread handles several messages, whose answers leave together.
#[inline]
pub(crate) fn handles_several() -> bool {
    RUNS.get() == Runs::OneOfSeveral
}

/// Runs a handler, and returns its result, or `None` if it panicked. Counts the panic.
#[inline]
pub(crate) fn run_handler<R>(
    counters: &Counters,
    runs: Runs,
    handler: impl FnOnce() -> R,
) -> Option<R> {
    let _handlers = span(Cost::Handlers);
    RUNS.with(|now| now.set(runs));
    let ran = contained(handler);
    RUNS.with(|now| now.set(Runs::NoHandler));
    if ran.is_none() {
        counters.panics.fetch_add(1, Ordering::Relaxed);
    }
    ran
}
