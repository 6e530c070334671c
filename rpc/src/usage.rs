//! What an end holds for calls.

use crate::bulk::Transfers;
use crate::stream::Streams;

/// What a server or a channel holds for calls that are under way. All is zero when no call is, and
/// the program has dropped the long bodies that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// Of a server, calls whose handlers run or wait to begin; of a channel, calls that wait for
    /// their answers.
    pub calls: usize,
    /// Calls of which a direction is a stream that has not ended, or that the program has not read
    /// to its end.
    pub streams: usize,
    /// Bodies too long for messages that are on their way, in either direction.
    pub bodies: usize,
    /// Bytes of memory for such bodies that are lent to senders or held by the program, and for
    /// messages of streams beyond 64 KiB that the program has not read: in units of 64 KiB.
    pub body_memory: usize,
}

impl Usage {
    pub(crate) fn of(calls: usize, streams: &Streams, transfers: &Transfers) -> Self {
        let (bodies, body_memory) = transfers.usage();
        Self { calls, streams: streams.count(), bodies, body_memory }
    }
}
