//! What links, handlers and the progress engine of a bundle tell each other without calling.
//!
//! Links say here that they hold messages, handlers that they have woken tasks; the progress
//! engine reads both. The folder counts events, and knows whether this thread runs a handler.

mod contained;
mod counters;
#[cfg(all(test, am_loom))]
mod interleavings;
mod running;
mod signals;
mod sync;
mod tasks;
mod wakes;
mod yielding;

pub(crate) use contained::contained;
pub(crate) use counters::{Counters, count};
pub use running::handles;
pub(crate) use running::{Runs, handles_several, run_handler};
pub(crate) use signals::{Gauge, Signals};
pub(crate) use tasks::{FEW, Reserved, Tasks};
pub(crate) use wakes::{Deferral, Deferring, drop_later, wake_later, wake_without_nic};
pub(crate) use yielding::yield_to_any;
