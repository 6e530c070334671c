//! Messages as programs get them, or see them waiting.

use bytes::Bytes;

use super::peer::Peer;

/// A message that was received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The bytes that were sent.
    pub body: Bytes,
    /// The sender, to which an answer can be sent.
    pub from: Peer,
}

/// A message that was received into [memory of the program](super::Endpoint::receive_into).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Received<R> {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The length of the body, which is at the beginning of the memory.
    pub len: usize,
    /// The memory that the program has given.
    pub into: R,
    /// The sender, to which an answer can be sent.
    pub from: Peer,
}

/// A message that waits for a receive, as [`Endpoint::probe`](super::Endpoint::probe) sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probed {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The length of the body.
    pub len: usize,
    /// The peer that has sent the message.
    pub from: Peer,
}
