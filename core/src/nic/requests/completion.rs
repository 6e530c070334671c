//! Completions: what became of a request.

use crate::nic::requests::failure::Failure;
use crate::nic::requests::memory::Memory;
use crate::nic::requests::work_request::{Attachment, Operation};
use crate::wire::Qpn;

/// The outcome of a request. Each request that was posted has a completion in the end, except
/// unsignalled ones that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The number that the program gave the request.
    pub id: u64,
    /// The queue pair that the request was posted to.
    pub qpn: Qpn,
    /// The success, with what was done, or the failure, with its cause.
    pub outcome: Result<Done, Failure>,
    /// How many bytes a message received has, or the peer wrote, or were read; otherwise 0.
    pub len: u32,
    /// The attachment of a received message.
    pub attached: Attachment,
    /// The memory that was lent to the NIC with the request.
    pub memory: Memory,
}

/// The success of a request: what it did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Done {
    /// The peer has received the message.
    Sent,
    /// The data is in the peer's memory.
    Written,
    /// The peer's data is in the request's memory.
    Read,
    /// The peer's word was replaced or added to, or left alone because it was not as expected.
    Atomic {
        /// The value that the word had before the operation.
        before: u64,
    },
    /// A message was received.
    Received,
    /// A datagram was received. It stands behind 40 bytes for its network header, of which an IPv4
    /// header takes the last 20.
    ReceivedDatagram {
        /// The queue pair that sent the datagram.
        source: Qpn,
    },
    /// A peer wrote to this side's registered memory, with an attachment: the memory of the receive
    /// itself was not filled.
    ReceivedWrite,
}

impl Completion {
    /// Makes the completion of a request that failed.
    pub(crate) fn failed(id: u64, qpn: Qpn, failure: Failure, memory: Memory) -> Self {
        Self { id, qpn, outcome: Err(failure), len: 0, attached: Attachment::Nothing, memory }
    }
}

impl Operation {
    /// Returns what an operation has done when it has succeeded; `before` is the value that an
    /// atomic operation found.
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

    /// Every request moves a completion into the ring and out of it, so its size matters.
    #[test]
    fn a_completion_is_small() {
        assert_eq!(size_of::<Completion>(), 96);
    }
}
