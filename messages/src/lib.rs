//! Messages for Tokio that the receiver selects by tag, as MPI and MX have them. Its modules have
//! messages that are streamed piece by piece, collectives, and the frame protocols of two papers.
//! All of them run over shared memory, UDP and raw Ethernet.
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
//! An [`Endpoint`] has a name on the network. A program connects to another endpoint by its name,
//! and sends messages with 64 match bits. The other program receives the messages that
//! [match](Match) all or some of the bits, from one peer or from any. A message that comes before
//! its receive waits for the receive.
//!
//! # The modules
//!
//! | module | what it has |
//! |---|---|
//! | this one | tagged messages: [`Endpoint`], [`Peer`], [`Match`], [`wait_any`] |
//! | [`streams`] | messages that are sent and received piece by piece, as in Fast Messages |
//! | [`collectives`] | barriers, broadcasts, reductions and the like among a group of endpoints |
//! | [`frames`] | messages over datagrams, by the protocols of EMP and RMPP, for comparisons |
//!
//! # Order
//!
//! A receive is posted when [`Endpoint::receive`] is called, and a send when [`Peer::send`] is
//! called. The futures that these return wait for the outcome. A receive takes the message that
//! came first of those that match it. A message goes to the receive that was posted first of those
//! that match it. Messages of one sender never overtake each other. These are MPI's rules.

#![forbid(unsafe_code)]

pub mod collectives;
pub mod frames;
mod matching;
mod slot;
pub mod streams;
mod tagged;

pub use tagged::{
    Anywhere, Body, CloseError, ConnectError, Endpoint, EndpointBuilder, GivenUp, Match, Message,
    OpenError, Peer, Probed, ReceiveError, Received, Receiving, RegionPart, Request, Room,
    SendError, Sending, Statistics, Unsent, Unwelcome, WhyGivenUp, WhyGone, wait_any,
};
