//! Active Messages for Tokio: a message names the handler that it runs.
//!
//! ```
//! use doorbell_am::{Bundle, BundleConfig, EndpointConfig, Handlers, ReplyId, RequestId};
//! # use doorbell_verbs::{Config, Nic};
//!
//! const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
//! const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let open = |end| Nic::open(&format!("shm:am-front/{}/{end}", std::process::id()), Config::default());
//! # let (there, here) = (open(0)?, open(1)?);
//! let server = Bundle::new(&there, &BundleConfig::default())?;
//! let adds = Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b));
//! let server = server.endpoint(adds, EndpointConfig::default()).await?;
//!
//! let client = Bundle::new(&here, &BundleConfig::default())?;
//! let client = client.endpoint(Handlers::new(), EndpointConfig::default()).await?;
//! let peer = client.map(0, server.name(), None).await?;
//! assert_eq!(peer.call(ADD, (2, 3)).await?.arguments(SUM)?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Bundle`] | the endpoints of a NIC, which one poll serves |
//! | [`Endpoint`] | a [name](Name), whom it [admits](Admits), [handlers](Handlers), a translation table, a segment |
//! | [`Peer`] | what is mapped: [requests](Peer::request), [calls](Peer::call), [placed payloads](Peer::place), [credits](Credit) |
//! | [`Request`], [`Kept`] | what a handler gets, and answers at most once |
//! | [`Event`] | what happens to an endpoint: peers come and go |
//! | [`Replied`], [`Reply`] | what comes back, to a handler or to a caller |
//!
//! # Who runs handlers
//!
//! Whoever waits for something of a bundle, who [polls](Bundle::poll) it, and when nobody does either, a
//! task of the runtime in which it was made. One thread at a time does, and the others go on: no
//! handler meets another, and a handler has its state for itself. It may reply, and do nothing else
//! with the network; what waits, or sends requests, is [asynchronous](Handlers::request_async).
//!
//! # How much it holds
//!
//! | what | at most |
//! |---|---|
//! | receives of an endpoint | [`receives`](EndpointConfig::receives), each as long as a payload, and 144 bytes, and a packet of 4096 at least; by [`Policy::PerSize`] so many of each size |
//! | the same with [`Flow::Nic`] | so many of each peer |
//! | buffers beside | as many, and those that handlers and callers keep: of handlers, no more than requests may be under way |
//! | requests under way to a peer | its credits, and no more than this side's |
//! | asynchronous handlers that run | [`tasks`](EndpointConfig::tasks); others wait, and hold their requests' credits |
//! | those that wait, of peers that have gone, too | three times [`receives`](EndpointConfig::receives); more are refused as [`Busy`](Undeliverable::Busy) |
//!
//! # The wire
//!
//! Sends of a reliable connection for each pair of endpoints, and RDMA writes for what is placed. Any
//! bytes that a peer may send are handled, sent back, or counted as [malformed](Statistics::malformed).

#![forbid(unsafe_code)]
#![allow(missing_debug_implementations)]

mod arguments;
mod arrival;
mod buffers;
mod builder;
mod bundle;
mod carried;
mod checks;
mod contained;
#[cfg(feature = "costs")]
pub mod costs;
#[cfg(not(feature = "costs"))]
mod costs;
mod endpoint;
mod error;
mod event;
mod expected;
mod handlers;
mod handling;
mod kept;
mod kinds;
mod life;
mod limit;
mod link;
mod links;
mod listing;
mod lookup;
mod message;
mod name;
mod names;
mod news;
mod numbered;
mod outbox;
mod owed;
mod pack;
mod peer;
mod poller;
mod proofs;
mod recall;
mod received;
mod receives;
mod refusal;
mod reply;
mod sizes;
mod tag;
mod tasks;
mod telling;
mod waiting;
mod wire;
mod words;

#[doc(hidden)]
pub use arguments::single;
pub use arguments::{Arguments, Field, Payload, Plain, Shape, Word};
pub use builder::EndpointBuilder;
pub use bundle::{Bundle, BundleConfig, Statistics};
pub use doorbell_macros::{Arguments, Plain, Word};
pub use endpoint::{Endpoint, EndpointConfig, Flow, Policy, SegmentMemory};
pub use error::{
    CallError, Called, Credits, MapError, OpenError, SendError, Undeliverable, WaitedFor,
};
pub use event::Event;
pub use handlers::{Handlers, ReplyId, RequestId, Stateless, WithState};
pub use kinds::{Call, Callable, Handled, IntoAnswer, Kind, Notice, OneWay};
pub use message::{Replied, Request, Returned};
pub use name::{Name, NameError};
pub use owed::Kept;
pub use peer::{Credit, Peer, Placing};
pub use received::Received;
pub use reply::Reply;
pub use tag::{Admits, Tag};
pub use words::{MOST_WORDS, ManyWords, Words};
