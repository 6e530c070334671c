//! Messages that have come.

use bytes::Bytes;
use doorbell_am as am;

use crate::matching::Source;
use crate::wire::Description;

/// A message that has come, before a receive has it.
#[derive(Debug)]
pub struct Arrived {
    pub bits: u64,
    pub len: usize,
    pub content: Content,
    pub from: Sender,
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

/// The sender of a message, and the connection by which the message has come.
#[derive(Clone, Debug)]
pub struct Sender {
    pub source: Source,
    pub link: am::Peer,
}

/// How a message begins that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// The message was sent within its sender's window.
    Sent { bits: u64 },
    /// The message was held, offered and taken.
    Taken { order: u64 },
}
