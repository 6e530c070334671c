//! The messages between endpoints of streams, as Active Messages.
//!
//! | message | words | payload |
//! |---|---|---|
//! | `HELLO`, answered by `WELCOME` | [`VERSION`], [`Limits`] | |
//! | `BEGIN` | a [`Packet`], the number of a stream | the first bytes of a message |
//! | `PIECE` | a [`Packet`] | further bytes of the message |
//! | `TAKEN` | a slot, how much of its window is free again | |
//! | `DONE` | a set of slots whose messages were handled | |
//! | `FAILED` | a slot, a [`Reason`] | the text of an error |
//!
//! A sender has a few slots at each receiver, and each message that is open has one. So a message
//! is named by the number of its slot, and several ends of messages are told by a bit each.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use doorbell_am::{ReplyId, RequestId};

use super::limits::Limits;

pub const HELLO: RequestId<[u64; 2]> = RequestId::new(0, "streams hello");
pub const BEGIN: RequestId<[u64; 2]> = RequestId::new(1, "streams begin");
pub const PIECE: RequestId<u64> = RequestId::new(2, "streams piece");
pub const TAKEN: RequestId<[u64; 2]> = RequestId::new(3, "streams taken");
pub const DONE: RequestId<u64> = RequestId::new(4, "streams done");
pub const FAILED: RequestId<[u64; 2]> = RequestId::new(5, "streams failed");
pub const WELCOME: ReplyId<[u64; 2]> = ReplyId::new(0, "streams welcome");

/// The version of what endpoints of streams say to each other.
pub const VERSION: u64 = 1;

/// The cost of each packet beside its bytes, so that short packets are bounded, too.
pub const OVERHEAD: usize = 128;

/// The longest text of a handler's error that is sent to the sender of the message.
pub const LONGEST_TEXT: usize = 400;

/// The properties of a packet of a message beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Packet {
    /// The slot of the message.
    pub slot: usize,
    /// Whether the message ends with this packet.
    pub ends: bool,
    /// Whether the sender gives the message up.
    pub abandons: bool,
    /// Whether the sender waits until the handler is done.
    pub waits: bool,
}

impl Packet {
    /// Returns the packet as a word.
    pub fn word(self) -> u64 {
        let Self { slot, ends, abandons, waits } = self;
        slot as u64 | u64::from(ends) << 8 | u64::from(abandons) << 9 | u64::from(waits) << 10
    }

    /// Reads the packet of a word. Returns `None` if the word has other bits.
    pub fn from_word(word: u64) -> Option<Self> {
        let bit = |at: u32| word >> at & 1 == 1;
        let packet =
            Self { slot: (word & 0xff) as usize, ends: bit(8), abandons: bit(9), waits: bit(10) };
        (packet.word() == word).then_some(packet)
    }
}

/// Why a receiver has stopped to take a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The receiver has no handler for the stream.
    NoHandler,
    /// The handler has returned without an error before the message ended.
    Returned,
    /// The handler has returned an error.
    Error,
    /// The handler has panicked.
    Panicked,
    /// The sender has sent what it may not.
    Violation,
}

impl Reason {
    const ALL: [Self; 5] =
        [Self::NoHandler, Self::Returned, Self::Error, Self::Panicked, Self::Violation];

    /// Returns the reason as a word.
    pub fn word(self) -> u64 {
        self as u64
    }

    /// Reads a reason from a word. Returns `None` if the word is none.
    pub fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

/// Returns the limits of an endpoint as a word.
pub fn limits_word(limits: Limits) -> u64 {
    (limits.window as u64) << 8 | limits.messages as u64
}

/// Reads the limits of a peer. Limits that no endpoint has become the next that one may have.
pub fn limits_of(word: u64) -> Limits {
    let window = usize::try_from(word >> 8).unwrap_or(usize::MAX);
    Limits { window, messages: (word & 0xff) as usize }.within_bounds()
}
