//! The progress engine of a bundle: it polls for what has come, and has it handled.
//!
//! Whoever waits for something runs the engine, and when nobody does, a task of the bundle. The
//! folder is told of endpoints and links as they come and go, polls the completion queues, and has
//! the dispatcher handle what came. It knows nothing of how endpoints are opened and connected.

mod bundle;
mod companions;
mod engine;
mod link_table;
mod poller;
mod resting;
mod side_tasks;
mod updates;
mod watched;
mod watching;

pub use bundle::{Bundle, Statistics, WeakBundle};
pub(crate) use engine::Engine;
pub use side_tasks::{Ready, Runner};
pub(crate) use updates::{Departure, Update};
