//! Answers that are owed to retained requests: by whom, and when they may leave.

use crate::error::Undeliverable;
use crate::wire::Header;

/// The place of a retained request in its link's table, distinct from requests that had the place
/// before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RetainedId {
    pub(super) place: usize,
    pub(super) round: u64,
}

/// The parties that still have to answer a retained request, if only by ending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owes {
    /// The holder of the [`Kept`](crate::Kept).
    Holder,
    /// The holder of the [`Kept`](crate::Kept), and behind it the task of an asynchronous handler.
    HolderAndTask,
    /// The task, whose `Kept` was dropped without a reply.
    Task,
}

/// An answer that is held back, until the peer has answered a question or this side has a credit.
#[derive(Debug)]
pub(crate) enum DeferredAnswer {
    /// A reply, for this handler and call.
    Reply { handler: u16, call: u16, words: Vec<u64>, payload: Vec<u8> },
    /// The request goes back, for this reason.
    Returned(Header, Undeliverable),
    /// No reply to this call, or to a request that is no call if the number is 0.
    Nothing { call: u16 },
}

impl DeferredAnswer {
    /// Returns the number of bytes of the words and the payload.
    pub fn len(&self) -> usize {
        match self {
            Self::Reply { words, payload, .. } => 8 * words.len() + payload.len(),
            Self::Returned(..) | Self::Nothing { .. } => 0,
        }
    }
}

/// Whether an answer to a retained request may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// The answer may be sent now.
    Now,
    /// The answer is held back until the peer has answered a question.
    Deferred,
    /// The request has given its credit back. Its answer waits for a credit of this side.
    Late,
    /// The answer comes too late, or another owes it.
    Never,
}
