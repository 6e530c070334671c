//! Active Messages for Tokio: each message names a function of the receiver, its handler, which runs
//! when the message arrives. A [`Call`] returns what the handler returns; a [`Notice`] is not
//! answered. Credits bound the messages under way, so that each finds a buffer.
//!
//! ```
//! use doorbell_am::{Call, Endpoint, Handlers};
//!
//! const ADD: Call<(u64, u64), u64> = Call::new("add");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let adds = Handlers::new().on(ADD, |_, (a, b)| a + b);
//!     let server = Endpoint::open("udp:127.0.0.1:0", adds).await?;
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
//! | [`Call`], [`Notice`] | kinds of messages: a name, and the types of the arguments and the answer |
//! | [`Handlers`] | functions that messages run, and that return the answer at once or [asynchronously](Handlers::on_async) |
//! | [`Endpoint`] | handlers on a device, with a [name](Name) by which others [connect](Endpoint::connect); [configured](Endpoint::builder) by a builder |
//! | [`Peer`] | a handle to an endpoint that was connected to: for [calls](Peer::call), [notices](Peer::notify), [placed payloads](Peer::place) and [credits](Credit) |
//! | [`Arguments`], [`Word`], [`Plain`] | types that messages carry, with derives |
//! | [`Event`] | events of an endpoint: peers come and go |
//! | [`Bundle`] | several endpoints of one NIC that are served together |
//! | [`group`] | processes that run collectives together |
//! | [`RequestId`], [`ReplyId`], [`Request`], [`Kept`], [`Reply`] | handlers at places that the program chooses, and replies that run handlers, as in Active Messages II |
//!
//! An [`Endpoint`] is a set of handlers with a name on the network. A program connects to another
//! endpoint by its name, and gets a [`Peer`], to which it sends. A task that waits for an answer
//! handles the messages that arrive meanwhile, so that no thread has to be woken.
//!
//! # Who runs handlers
//!
//! Handlers are run by any task that waits for something of the bundle, by a program that
//! [polls](Bundle::poll) the bundle, and when nobody does either, by a task of the runtime in which
//! the bundle was made. One thread at a time runs handlers, and others that would do so go on. So
//! no two handlers of a bundle run at the same time, and a handler has its state for itself. It may
//! answer, and do nothing else with the network. A handler that waits, or sends messages, is
//! [asynchronous](Handlers::on_async).
//!
//! # How much memory it holds
//!
//! | what | at most |
//! |---|---|
//! | receives of an endpoint | [`receives`](EndpointConfig::receives), and one for each of [`peers`](EndpointConfig::peers), each as long as a payload and 144 bytes, and at least a packet of 4096 bytes; with [`Policy::PerSize`] as many of each size class |
//! | receives of an endpoint with [`Flow::Nic`] | the configured number for each peer |
//! | spare buffers, which the endpoints of a bundle share | as many as receives, and those that handlers and callers keep; handlers keep no more than there may be requests under way, and [`task_memory`](EndpointConfig::task_memory) |
//! | requests under way to a peer | the credits that the peer grants, and this side's own [`credits`](EndpointConfig::credits) |
//! | the listing of a peer's named handlers | 5 MB if the peer has 4094 handlers of the longest names; once for all peers that have the same |
//! | asynchronous handlers under way, also for peers that have gone | [`tasks`](EndpointConfig::tasks), and a sixteenth more of peers with few; more are refused as [`Busy`](Undeliverable::Busy) |
//! | what the requests of these handlers keep | [`task_memory`](EndpointConfig::task_memory), and a sixteenth more of peers with few; more are refused as [`Busy`](Undeliverable::Busy) |
//! | calls of this side that a peer answers late | 131,072 of each peer, which is more than its handlers under way |
//!
//! # The wire
//!
//! Each pair of endpoints has a reliable connection. Messages are sends, and placed payloads are
//! RDMA writes. Any bytes that a peer may send are handled, sent back, or counted as
//! [malformed](Statistics::malformed).
//!
//! # The layers of this crate
//!
//! Each folder imports from those above it in this list, and from none below.
//!
//! | folder | what it is for |
//! |---|---|
//! | `costs` | spans of time, which only the build that breaks costs down measures |
//! | `proof` | proofs that a peer knows a tag, and challenges |
//! | `wire`, `arguments`, `config`, `error` | data: formats, values, settings, errors |
//! | `receives`, `kinds`, `credits` | bookkeeping: buffers, kinds of messages, credits and calls under way |
//! | `shared` | signals between links, handlers and the progress engine |
//! | `link` | one connection: sends, credits, answers, retained requests |
//! | `peer` | the program's handle to a link, and the waiting for what comes back |
//! | `handlers` | functions of the program, and the messages as they see them |
//! | `dispatch` | from a received message to the handler that it runs |
//! | `progress` | the engine that polls the NIC and has what came dispatched |
//! | `endpoint` | endpoints: opened, connected, closed |
//! | `group` | collectives among processes |
//!
//! # Features
//!
//! With `serde`, names, tags, settings and counters can be serialised, such as [`Name`], [`Tag`],
//! [`Admits`], [`BundleConfig`] and [`Statistics`].

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
#[doc(hidden)]
pub mod parsers;
mod peer;
mod progress;
#[doc(hidden)]
pub mod proof;
mod receives;
mod shared;
#[doc(hidden)]
pub mod stall;
mod wire;

#[doc(hidden)]
pub use arguments::single;
pub use arguments::{Arguments, Field, Payload, Plain, Shape, Word};
pub use config::{BundleConfig, EndpointConfig, Flow, Policy, SegmentMemory};
/// A struct that is what a message carries:
///
/// ```
/// use bytes::Bytes;
/// use doorbell_am::Arguments;
///
/// #[derive(Arguments)]
/// # #[doorbell(crate = "doorbell_am")]
/// struct Put {
///     key: u64,
///     lifetime: f64,
///     value: Bytes,
/// }
///
/// let put = Put { key: 7, lifetime: 0.5, value: Bytes::from_static(b"seven") };
/// assert_eq!(put.count(), 2);
/// assert_eq!(put.payload(), b"seven");
/// assert_eq!(Put::type_name(), "Put { key: u64, lifetime: f64, value: Bytes }");
/// ```
pub use doorbell_macros::Arguments;
/// Structs that lie in a payload as they lie in memory:
///
/// ```
/// use doorbell_am::{Arguments, Plain};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy)]
/// # #[doorbell(crate = "doorbell_am")]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
///
/// let line = vec![Point { x: 0.0, y: 0.0 }, Point { x: 3.0, y: 4.0 }];
/// assert_eq!(Arguments::payload(&line).len(), 32);
/// assert_eq!(Point::KIND, "Point { x: f64, y: f64 }");
/// ```
pub use doorbell_macros::Plain;
/// Types that are one word of a message:
///
/// ```
/// use doorbell_am::Word;
///
/// #[derive(Word, Clone, Copy)]
/// # #[doorbell(crate = "doorbell_am")]
/// struct Key(u64);
///
/// #[derive(Word, Clone, Copy, PartialEq, Debug)]
/// # #[doorbell(crate = "doorbell_am")]
/// enum Colour {
///     Red,
///     Green = 7,
/// }
///
/// assert_eq!(Key(3).word(), 3);
/// assert_eq!(Colour::Green.word(), 7);
/// assert_eq!(Colour::from_word(0), Some(Colour::Red));
/// assert_eq!(Colour::from_word(1), None);
/// ```
pub use doorbell_macros::Word;
pub use doorbell_verbs::{Name, NameError};
pub use endpoint::{Endpoint, EndpointBuilder, Event};
pub use error::{
    CallError, Called, CloseError, ConnectError, Credits, GivenUp, OpenError, SendError,
    Undeliverable, Unsent, Unwelcome, WaitedFor, WhyGivenUp, WhyGone,
};
#[doc(hidden)]
pub use handlers::Collect;
pub use handlers::{Handlers, Kept, Received, Replied, Request, Returned, Stateless, WithState};
pub use kinds::{
    Call, Callable, Handled, IntoAnswer, Kind, Notice, OneWay, Reply, ReplyId, RequestId,
};
#[doc(hidden)]
pub use peer::PeerHost;
pub use peer::{Credit, Peer, Placing};
#[doc(hidden)]
pub use peer::{Gathered, part_of};
#[doc(hidden)]
pub use progress::WeakBundle;
pub use progress::{Bundle, Statistics};
#[doc(hidden)]
pub use progress::{Ready, Runner};
#[doc(hidden)]
pub use shared::handles as in_handler;
pub use wire::{Admits, MOST_WORDS, ManyWords, Tag, Words};
