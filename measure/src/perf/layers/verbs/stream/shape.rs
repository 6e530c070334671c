//! What both ends of a stream share: how messages are bundled, and the connection.

use doorbell_verbs::{Capabilities, CompletionQueue, Mapped, Queues, RemoteMemory};

/// The bit of an immediate that says that no message follows.
pub const LAST: u32 = 1 << 31;

/// How messages are bundled.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of messages in a batch.
    pub batch: u64,
    /// The most messages that are not checked yet. These are enough batches that the next ones are
    /// posted while the first are checked, and together not much more than caches hold. Where
    /// frames hold runs of packets, each end of a batch cuts a run short, so fewer and longer
    /// batches pay.
    pub window: u64,
}

impl Shape {
    pub fn of(size: usize, capabilities: &Capabilities) -> Self {
        let bytes = if capabilities.run > 1 { 1 << 20 } else { 1 << 19 };
        let fitting = bytes / size.max(1) as u64;
        let batch = fitting.clamp(8, 256);
        Self { batch, window: (2 * fitting).clamp(2 * batch, 4 * batch) }
    }
}

/// The connection, as either end holds it.
pub struct Line {
    pub queues: Queues,
    pub completions: CompletionQueue,
    pub theirs: RemoteMemory,
    /// The mapping of the other end's memory, if there is one. Writes then need no packet.
    pub mapped: Option<Mapped>,
}
