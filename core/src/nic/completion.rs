//! What became of a request.

use thiserror::Error;

use crate::wire::{Imm, Qpn, RnrTimer};

use super::keys::KeyError;
use super::work::Memory;

/// What became of a request: each that was posted has one in the end, but for unsignalled ones
/// that succeeded.
#[derive(Debug)]
pub struct Completion {
    /// The request's.
    pub id: u64,
    /// The queue pair that it was posted to.
    pub qpn: Qpn,
    /// What was done, or why it was not.
    pub outcome: Result<Done, Failure>,
    /// The bytes of a message received or written; nothing for one's own requests.
    pub len: u32,
    /// The immediate that a message received brought with it.
    pub imm: Option<Imm>,
    /// The memory that the request took with it.
    pub memory: Memory,
}

/// What a request did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// The peer has received the message.
    Sent,
    /// The data is in the peer's memory.
    Written,
    /// A message was received.
    Received,
    /// A peer wrote to this side's memory, and said so: the receive itself was not filled.
    ReceivedWrite,
}

/// Why a request was not carried out. The queue pair is then in the error state: whatever else was
/// posted is flushed, and it is of use again only after a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Failure {
    /// This request broke the queue pair.
    #[error("{0}")]
    Broke(Cause),
    /// The queue pair was broken before, or told to stop. What of the request reached the peer is
    /// unknown.
    #[error("flushed unfinished: {0}")]
    Flushed(Cause),
}

/// What broke a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Cause {
    /// The program told it to.
    #[error("the queue pair was told to go to the error state")]
    Told,
    /// Memory that the request names may not be used so.
    #[error("segment {segment} of the request: {why}")]
    LocalProtection {
        /// Which of the request's segments.
        segment: u16,
        /// What is wrong with it.
        why: KeyError,
    },
    /// A message came that its receive has no room for.
    #[error("a message of more than {room} bytes came for a receive of {room}")]
    TooLong {
        /// What the receive had room for.
        room: u32,
    },
    /// The peer does not answer; or, on a lossless device, its NIC answers that it is not there, or
    /// not connected to this queue pair.
    #[error("no answer from the peer after {tries} tries; is it there, and is the path right?")]
    NoAnswer {
        /// How often it was sent.
        tries: u8,
    },
    /// The peer has no receives posted.
    #[error("the peer had no receive for it, {tries} times; it asked to wait {:?}", .wait.delay())]
    ReceiverNotReady {
        /// How often it was refused.
        tries: u8,
        /// How long the peer asked to wait, the last time.
        wait: RnrTimer,
    },
    /// The peer says that the request is not one: wrong length or order, or not allowed there.
    #[error("the peer took it for an invalid request; is it longer than the peer's receive?")]
    PeerInvalidRequest,
    /// The peer says that key, bounds or rights do not allow it.
    #[error("the peer refused access: check key, address, length, and the rights given there")]
    PeerAccess,
    /// The peer could not carry it out.
    #[error("the peer could not carry it out")]
    PeerOperation,
    /// The peer answered what makes no sense.
    #[error("the peer's answer makes no sense (syndrome {0:#04x})")]
    BadAnswer(u8),
    /// A peer's request was not one, and was refused.
    #[error("a request of the peer's was invalid, and was refused")]
    InvalidRequest,
    /// A peer's request named memory that it may not write.
    #[error("a request of the peer's was refused access: {0}")]
    Access(KeyError),
}

impl Completion {
    /// Of a request that was not carried out.
    pub(super) fn failed(id: u64, qpn: Qpn, failure: Failure, memory: Memory) -> Self {
        Self { id, qpn, outcome: Err(failure), len: 0, imm: None, memory }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// It is moved into the ring and out of it with every request.
    #[test]
    fn a_completion_is_small() {
        assert_eq!(size_of::<Completion>(), 72);
    }
}
