//! The messages between endpoints, as Active Messages.
//!
//! | packet | words | payload |
//! |---|---|---|
//! | `Eager` | match bits, [`Heading`], the message's number | the body, or its beginning |
//! | `Taken` | the order of an offer that was taken, [`Heading`], the message's number | the body, or its beginning |
//! | [`SHORT`] | match bits, the length, and the body | |
//! | `More` | | more of the body that the last `Eager` or `Taken` has begun |
//! | `Holds` | | |
//! | `Offer` | a search, an order, match bits | the length of the body, in eight bytes |
//! | `Freed` | a part of the window | |
//! | `Search` | a search, match bits, a mask | |
//! | `GivenUp` | a search | |
//! | `Take`, `Leave` | an order | |
//! | `Done` | the number of a message, and whether the message was received | |
//! | `Passed`, `Again` | an order, and whether no message is held any more | |
//! | `Back` | an order, match bits, the length of the body | |
//! | `Browse` | a search, an order | |
//! | `Seen` | a search | |
//! | `Connect` | the place of the device by which the connection for long bodies has ended | |
//!
//! Endpoints that meet greet each other by [`GREET`], a call whose payload is a [`Greeting`] and
//! whose answer an [`Answer`]. Between endpoints with several devices, each packet is in a [`STRIPED`], with its
//! sequence number and its kind, and [`ACKNOWLEDGED`] says which have come.
//!
//! A long message has no body in `Eager` or `Taken`, but a [`Description`] of where the body is,
//! from where the receiver pulls it. Messages have a number if their sender waits for `DONE`.
//!
//! What the words about windows, searches and offers mean is said in [`pacing`](crate::tagged::pacing).

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod description;
mod greeting;
mod heading;
mod packet;
mod proof;
mod short;

use bytes::Bytes;
use doorbell_am::{Call, RequestId};

pub use description::{Description, Memory, describe, most_pieces};
pub use greeting::{Greeting, MOST_RAILS, Pulls, Rail, Whereabouts};
pub use heading::Heading;
pub use packet::{Kind, Packet};
pub use proof::{Answer, Proof};
pub use short::{SHORT, Short, bytes_of_words, short_words};

/// The greeting of an endpoint, and the answer to it.
pub const GREET: Call<Bytes, Bytes> = Call::new("doorbell messages: greet");
/// A packet with its sequence number and its kind, before its words.
pub const STRIPED: RequestId<[u64; 5]> = RequestId::new(20, "messages: striped");
/// The sequence number behind all packets that have come.
pub const ACKNOWLEDGED: RequestId<u64> = RequestId::new(21, "messages: acknowledged");

/// The cost of a message in its sender's window beside its bytes: what an endpoint needs to keep and
/// to find a message, as long as receives ask by two masks at most.
pub const OVERHEAD: usize = 384;
