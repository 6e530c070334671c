//! Completions: what became of a request.

use crate::nic::requests::failure::Failure;
use crate::nic::requests::memory::Memory;
use crate::nic::requests::work_request::{Attachment, Operation};
use crate::wire::Qpn;

/// What became of a request: each that was posted has one in the end, but for unsignalled ones
/// that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The request's.
    pub id: u64,
    /// The queue pair that it was posted to.
    pub qpn: Qpn,
    /// What was done, or why it was not.
    pub outcome: Result<Done, Failure>,
    /// The bytes of a message received, written by the peer, or read; otherwise nothing.
    pub len: u32,
    /// What a message received brought with it.
    pub attached: Attachment,
    /// The memory that the request took with it.
    pub memory: Memory,
}

/// What a request did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Done {
    /// The peer has received the message.
    Sent,
    /// The data is in the peer's memory.
    Written,
    /// What was in the peer's memory is in the request's.
    Read,
    /// The peer's word was replaced or added to, or left alone because it was not as expected.
    Atomic {
        /// What it was before.
        before: u64,
    },
    /// A message was received.
    Received,
    /// A datagram was received: behind 40 bytes in which its network header stands, an IPv4 header
    /// in the last 20 of them.
    ReceivedDatagram {
        /// The queue pair that sent it.
        source: Qpn,
    },
    /// A peer wrote to this side's memory, and said so: the receive itself was not filled.
    ReceivedWrite,
}

impl Completion {
    /// Of a request that was not carried out.
    pub(crate) fn failed(id: u64, qpn: Qpn, failure: Failure, memory: Memory) -> Self {
        Self { id, qpn, outcome: Err(failure), len: 0, attached: Attachment::Nothing, memory }
    }
}

impl Operation {
    /// What has been done when it was; `before` is what an atomic operation found.
    #[inline]
    pub(crate) const fn done(self, before: u64) -> Done {
        match self {
            Self::Send | Self::Datagram { .. } => Done::Sent,
            Self::Write { .. } => Done::Written,
            Self::Read { .. } => Done::Read,
            Self::CompareSwap { .. } | Self::FetchAdd { .. } => Done::Atomic { before },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// It is moved into the ring and out of it with every request.
    #[test]
    fn a_completion_is_small() {
        assert_eq!(size_of::<Completion>(), 96);
    }
}
