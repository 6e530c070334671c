//! Messages that have come.

use std::sync::Arc;

use bytes::Bytes;

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

/// The sender of a message.
#[derive(Clone, Debug)]
pub struct Sender {
    pub source: Source,
    /// The name by which others connect to the sender, as far as it is known.
    pub name: Option<Arc<str>>,
}

/// How a message begins that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// The message was sent within its sender's window.
    Sent { bits: u64 },
    /// The message was held, offered and taken.
    Taken { order: u64 },
}
