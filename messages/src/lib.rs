//! Messages for Tokio: matched by tags, streamed piece by piece, and exchanged by groups.
//!
//! This module has tagged messages: sent with 64 bits of match information, and received by them.
//!
//! An [`Endpoint`] has a name on the network. A program connects to another endpoint by its name,
//! and sends it messages. The other program receives them by [what they match](Match): the bits, or
//! some of them, from one peer or from any. A message that comes before its receive waits for it.
//!
//! ```
//! use doorbell_messages::{Endpoint, Match};
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let far = Endpoint::open("udp:127.0.0.1:0").await?;
//!     let near = Endpoint::open("udp:127.0.0.1:0").await?;
//!     let peer = near.connect(far.name()).await?;
//!     peer.send(7, "seven").await?;
//!     peer.send(8, "eight").await?;
//!     let eight = far.receive(Match::exactly(8)).await?;
//!     let first = far.receive(Match::any()).await?;
//!     assert_eq!((&eight.body[..], &first.body[..]), (&b"eight"[..], &b"seven"[..]));
//!     Ok(())
//! }
//! ```
//!
//! # The other modules
//!
//! | | |
//! |---|---|
//! | [`collectives`] | barriers, broadcasts, reductions and the like among a group of endpoints |
//! | [`streams`] | messages that are sent and received piece by piece, as Fast Messages has them |
//! | [`frames`] | messages over datagrams, by the protocols of EMP and RMPP, for comparisons |
//!
//! # Order
//!
//! Receives are posted when [`Endpoint::receive`] is called, and sends when [`Peer::send`] is; the
//! futures that these return wait for the outcome. A receive takes the message that came first of
//! those that match it; a message goes to the receive that was posted first of those that match it;
//! and messages of one sender never overtake each other. That is MPI's rule.

#![forbid(unsafe_code)]

pub mod collectives;
pub mod frames;
mod matching;
mod slot;
pub mod streams;
mod tagged;

pub use tagged::{
    Body, CloseError, ConnectError, Endpoint, EndpointBuilder, GivenUp, Match, Message, OpenError,
    Peer, Probed, ReceiveError, Receiving, Request, SendError, Sending, Statistics, Unsent,
    Unwelcome, WhyGivenUp, WhyGone, wait_any,
};
