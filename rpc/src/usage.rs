//! The usage of a server or a channel: how much it holds for calls in flight.

use crate::bulk::Transfers;
use crate::stream::Streams;

/// The resources that a server or a channel holds for calls in flight. All numbers are zero when no
/// call is in flight and handlers have dropped all long bodies that they were given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// For a server, the calls whose handlers run or wait to begin. For a channel, the calls that
    /// wait for their answers.
    pub calls: usize,
    /// Calls of which a direction is a stream that has not ended, or that the program has not read
    /// to its end.
    pub streams: usize,
    /// Bodies too long for a message that are on their way, in either direction.
    pub bodies: usize,
    /// Memory for long data in bytes, in units of 64 KiB: bodies too long for a message, while they
    /// are received or a handler holds them, and messages of streams beyond 64 KiB that the program
    /// has not read. A response that a client's program was given does not count.
    pub body_memory: usize,
}

impl Usage {
    pub(crate) fn of(calls: usize, streams: &Streams, transfers: &Transfers) -> Self {
        let (bodies, body_memory) = transfers.usage();
        Self { calls, streams: streams.count(), bodies, body_memory }
    }
}
