//! Messages that have come.

use bytes::Bytes;

use super::peer::Peer;
use crate::wire::Description;

/// A message that has come, before a receive has it.
#[derive(Debug)]
pub struct Arrived {
    pub bits: u64,
    pub len: usize,
    pub content: Content,
    pub from: Peer,
    /// The number by which the sender waits for the message's end; zero if it does not wait.
    pub number: u64,
}

/// The body of a message that has come.
#[derive(Debug)]
pub enum Content {
    Here(Bytes),
    /// A long body, to be pulled from its sender.
    There(Description),
}
