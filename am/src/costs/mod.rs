//! Spans that say what a thread's time is spent on while it sends and handles messages, in the
//! categories of the paper that Doorbell follows.
//!
//! The sources of this crate are compiled twice. In `doorbell-am`, which programs use, a span has
//! no size and does nothing, so the code is what it would be without spans. In the package
//! `doorbell-am-costs`, which only the command `doorbell` depends on, spans are measured.

#[cfg(feature = "costs")]
mod meter;
#[cfg(not(feature = "costs"))]
mod unmeasured;

#[cfg(feature = "costs")]
pub use meter::{Span, span, watch};
#[cfg(not(feature = "costs"))]
pub use unmeasured::{Span, span};

/// A category of what a thread's time is spent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Calls into verbs that post requests, ring doorbells, or have the NIC take turns.
    Base,
    /// Notification: completion queues are polled to find out what has happened.
    Notification,
    /// Flow control by credits, and the receives that stand behind them.
    FlowControl,
    /// Semantics: messages are made, taken apart, and carried out.
    Semantics,
    /// Handlers, without the parts of them that belong to other categories.
    Handlers,
}
