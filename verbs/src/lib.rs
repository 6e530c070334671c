//! InfiniBand verbs for Tokio: a program writes to another's memory, and awaits that it is there.

mod completions;
mod connect;
mod domain;
mod error;
mod events;
#[cfg(all(test, verbs_loom))]
mod interleavings;
mod memory;
mod nic;
mod pair;
mod progress;
mod queues;
mod shared_receives;
mod statistics;
mod sync;
mod sys;
mod waiting;
mod wakers;
pub mod work;

pub use completions::{CompletionInHand, CompletionQueue, Hand, NextCompletion};
pub use connect::{Connection, Incoming, Kind, Listener, Private, Side, Unconnected};
pub use domain::Domain;
pub use error::{
    ConnectError, Failed, FailedWhy, ListenRefused, NicError, PostReceiveError, RegisterError,
};
pub use events::AsyncEvent;
pub use memory::{Registered, RemoteMemory, RemoteMemoryError, Rights};
pub use nic::{Config, Nic, Progress};
pub use pair::{Ending, Message, Operation, QueuePair, QueuePairConfig, Receive, Stand};
pub use queues::{Batch, Queues, QueuesConfig, ReceiveQueue, SendQueue};
pub use shared_receives::SharedReceiveQueue;
pub use statistics::Statistics;
pub use waiting::Until;
pub use work::{CompareSwap, FetchAdd, Read, Send, Write};

pub use doorbell_core::memory::{AccessError, Buf, Private as PrivateRegion, Region};
pub use doorbell_core::nic::{
    Attachment, Cause, Completion, CompletionQueueId, Data, Done, Failure, Inline, KeepAlive,
    Memory, PostError, Refused, ResourceError, Segment, SharedReceiveQueueId, WorkRequest,
};
pub use doorbell_core::wire::{Imm, Metadata, Qpn, ServiceId};
pub use doorbell_transports::{Address, Grant, SharedMemory};
