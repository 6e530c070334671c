//! The messages between endpoints, as Active Messages.
//!
//! | message | words | payload |
//! |---|---|---|
//! | `GREET`, a call | | a [`Greeting`], which the answer is, too |
//! | `EAGER` | match bits, [`Heading`], the message's number | the body, or its beginning |
//! | `TAKEN` | the order of an offer that was taken, [`Heading`], the message's number | the body, or its beginning |
//! | `MORE` | | more of the body that the last `EAGER` or `TAKEN` has begun |
//! | `HOLDS` | | |
//! | `OFFER` | a search, an order, match bits | |
//! | `FREED` | a part of the window | |
//! | `SEARCH` | a search, match bits, a mask | |
//! | `GIVEN_UP` | a search | |
//! | `TAKE`, `LEAVE` | an order | |
//! | `DONE` | the number of a message, and whether the message was received | |
//!
//! A long message has no body in `EAGER` or `TAKEN`, but a [`Description`] of where the body is,
//! from where the receiver pulls it. Messages have a number if their sender waits for `DONE`.
//!
//! What the words about windows, searches and offers mean is said in [`pacing`](crate::pacing).

mod description;
mod greeting;
mod heading;

use bytes::Bytes;
use doorbell_am::{Call, RequestId};

pub use description::{Description, MOST_PIECES, Part, describe};
pub use greeting::{Greeting, Pulls, Whereabouts};
pub use heading::Heading;

pub const GREET: Call<Bytes, Bytes> = Call::new("doorbell messages: greet");
pub const EAGER: RequestId<[u64; 3]> = RequestId::new(0, "messages eager");
pub const TAKEN: RequestId<[u64; 3]> = RequestId::new(1, "messages taken");
pub const HOLDS: RequestId<()> = RequestId::new(2, "messages holds");
pub const OFFER: RequestId<[u64; 3]> = RequestId::new(3, "messages offer");
pub const FREED: RequestId<u64> = RequestId::new(4, "messages freed");
pub const SEARCH: RequestId<[u64; 3]> = RequestId::new(5, "messages search");
pub const GIVEN_UP: RequestId<u64> = RequestId::new(6, "messages given up");
pub const TAKE: RequestId<u64> = RequestId::new(7, "messages take");
pub const LEAVE: RequestId<u64> = RequestId::new(8, "messages leave");
pub const DONE: RequestId<[u64; 2]> = RequestId::new(9, "messages done");
pub const MORE: RequestId<()> = RequestId::new(10, "messages more");

/// What a message counts of its sender's window beside its bytes, so that empty ones are bounded,
/// too.
pub const OVERHEAD: usize = 128;
