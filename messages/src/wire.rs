//! The messages between endpoints, as Active Messages.
//!
//! | message | words | payload |
//! |---|---|---|
//! | `EAGER` | match bits, [`Flags`], the number of a synchronous send | the body |
//! | `TAKEN` | the order of an offer that was taken, [`Flags`], the number of a synchronous send | the body |
//! | `HOLDS` | | |
//! | `OFFER` | a search, an order, match bits | |
//! | `FREED` | a part of the window | |
//! | `SEARCH` | a search, match bits, a mask | |
//! | `GIVEN_UP` | a search | |
//! | `TAKE`, `LEAVE` | an order | |
//! | `MATCHED` | the number of a synchronous send | |
//!
//! What the words mean is said in [`pacing`](crate::pacing).

use doorbell_am::RequestId;

pub const EAGER: RequestId<[u64; 3]> = RequestId::new(0, "messages eager");
pub const TAKEN: RequestId<[u64; 3]> = RequestId::new(1, "messages taken");
pub const HOLDS: RequestId<()> = RequestId::new(2, "messages holds");
pub const OFFER: RequestId<[u64; 3]> = RequestId::new(3, "messages offer");
pub const FREED: RequestId<u64> = RequestId::new(4, "messages freed");
pub const SEARCH: RequestId<[u64; 3]> = RequestId::new(5, "messages search");
pub const GIVEN_UP: RequestId<u64> = RequestId::new(6, "messages given up");
pub const TAKE: RequestId<u64> = RequestId::new(7, "messages take");
pub const LEAVE: RequestId<u64> = RequestId::new(8, "messages leave");
pub const MATCHED: RequestId<u64> = RequestId::new(9, "messages matched");

/// Properties of a message, as bits of one word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// Whether the sender holds no other message.
    pub last: bool,
    /// Whether the sender waits until a receive has taken the message.
    pub synchronous: bool,
}

impl Flags {
    pub fn word(self) -> u64 {
        u64::from(self.last) | u64::from(self.synchronous) << 1
    }

    pub fn from_word(word: u64) -> Self {
        Self { last: word & 1 == 1, synchronous: word >> 1 & 1 == 1 }
    }
}

/// What a message counts of its sender's window beside its bytes, so that empty ones are bounded,
/// too.
pub const OVERHEAD: usize = 128;
