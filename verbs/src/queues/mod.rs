//! Queue pairs for programs that post to queues and read completion queues.
//!
//! This folder is told by programs what to post, and hands requests to the NIC's queues. It returns
//! completions in a [`CompletionQueue`], as a stream or one by one. [`Datagrams`] are such queues
//! without a connection; a [`SharedReceiveQueue`] serves several queue pairs.

mod completions;
mod config;
mod datagrams;
mod destination;
mod held;
mod next;
mod queue_pair;
mod receive;
mod send;
mod shared_receives;

pub use completions::CompletionQueue;
pub use config::QueuesConfig;
pub use datagrams::{Datagrams, DatagramsConfig};
pub use destination::Destination;
pub use next::{NextCompletion, UntilCompletion};
pub use queue_pair::Queues;
pub use receive::ReceiveQueue;
pub use send::{Batch, SendQueue};
pub use shared_receives::SharedReceiveQueue;
