//! Active Messages for Tokio: a message names the handler that it runs.
//!
//! ```
//! use doorbell::am::{Call, Endpoint, Handlers};
//!
//! const ADD: Call<(u64, u64), u64> = Call::new("add");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let server = Endpoint::open("udp:127.0.0.1:0", Handlers::new().on(ADD, |_, (a, b)| a + b)).await?;
//!     let client = Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await?;
//!     let peer = client.connect(server.name()).await?;
//!     assert_eq!(peer.call(ADD, (2, 3)).await?, 5);
//!     Ok(())
//! }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Call`], [`Notice`] | kinds of messages: a name, and the types of what goes there and comes back |
//! | [`Handlers`] | what messages run: functions that return the answer, at once or [asynchronously](Handlers::on_async) |
//! | [`Endpoint`] | handlers, a device, and a [name](Name) by which others [connect](Endpoint::connect); [configured](Endpoint::builder) by a builder |
//! | [`Peer`] | an endpoint that was connected to: [calls](Peer::call), [notices](Peer::notify), [placed payloads](Peer::place), [credits](Credit) |
//! | [`Arguments`], [`Word`], [`Plain`] | types that messages carry, with derives |
//! | [`Event`] | what happens to an endpoint: peers come and go |
//! | [`Bundle`] | several endpoints of one NIC, which one poll serves |
//! | [`group`] | processes that run collectives together |
//! | [`RequestId`], [`ReplyId`], [`Request`], [`Kept`], [`Reply`] | handlers at places that the program chooses, and replies that run handlers, as Active Messages II has them |
//!
//! # Who runs handlers
//!
//! Whoever waits for something of a bundle, who [polls](Bundle::poll) it, and when nobody does
//! either, a task of the runtime in which it was made. One thread at a time does, and the others go
//! on: no handler meets another, and a handler has its state for itself. It may answer, and do
//! nothing else with the network; what waits, or sends messages, is
//! [asynchronous](Handlers::on_async).
//!
//! # How much it holds
//!
//! | what | at most |
//! |---|---|
//! | receives of an endpoint | [`receives`](EndpointConfig::receives), each as long as a payload, and 144 bytes, and a packet of 4096 at least; by [`Policy::PerSize`] so many of each size |
//! | the same with [`Flow::Nic`] | so many of each peer |
//! | buffers beside | as many, and those that handlers and callers keep: of handlers, no more than requests may be under way |
//! | requests under way to a peer | its credits, and no more than this side's |
//! | what a peer tells of its named handlers | 5 MB if it has 4094 of the longest names; once for all peers that have the same |
//! | asynchronous handlers that run | [`tasks`](EndpointConfig::tasks); others wait, and hold their requests' credits |
//! | those that wait, of peers that have gone, too | three times [`receives`](EndpointConfig::receives); more are refused as [`Busy`](Undeliverable::Busy) |
//!
//! # The wire
//!
//! Sends of a reliable connection for each pair of endpoints, and RDMA writes for what is placed.
//! Any bytes that a peer may send are handled, sent back, or counted as
//! [malformed](Statistics::malformed).

#![forbid(unsafe_code)]

mod arguments;
mod config;
// Public for the layer above, whose spans are of the same kind.
#[doc(hidden)]
pub mod costs;
mod credits;
mod dispatch;
mod endpoint;
mod error;
pub mod group;
mod handlers;
mod kinds;
mod link;
mod lock;
mod name;
mod peer;
mod progress;
mod receives;
mod shared;
#[doc(hidden)]
pub mod stall;
mod wire;

#[doc(hidden)]
pub use arguments::single;
pub use arguments::{Arguments, Field, Payload, Plain, Shape, Word};
pub use config::{BundleConfig, EndpointConfig, Flow, Policy, SegmentMemory};
pub use doorbell_macros::{Arguments, Plain, Word};
pub use endpoint::{Endpoint, EndpointBuilder, Event};
pub use error::{
    CallError, Called, Credits, MapError, OpenError, SendError, Undeliverable, WaitedFor,
};
pub use handlers::{Handlers, Kept, Received, Replied, Request, Returned, Stateless, WithState};
pub use kinds::{
    Call, Callable, Handled, IntoAnswer, Kind, Notice, OneWay, Reply, ReplyId, RequestId,
};
pub use name::{Name, NameError};
pub use peer::{Credit, Peer, Placing};
pub use progress::{Bundle, Statistics};
pub use wire::{Admits, MOST_WORDS, ManyWords, Tag, Words};
