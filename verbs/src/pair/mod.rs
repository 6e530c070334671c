//! Queue pairs whose requests are futures.
//!
//! This folder is told by programs which requests to carry out, and posts them by way of the
//! dispatcher. It returns each completion through the future of its request, and messages through
//! [`QueuePair::receive`].

mod config;
mod making;
mod message;
mod operation;
mod queue_pair;
mod receive;

pub use config::QueuePairConfig;
pub use message::Message;
pub use operation::Operation;
pub use queue_pair::QueuePair;
pub use receive::Receive;
