//! RPC for Tokio inside a cluster. A service is a trait of async functions, or a set of tower
//! services; its calls travel as Active Messages over shared memory, UDP or raw Ethernet. Status
//! codes, deadlines and streams are those of gRPC.
//!
//! ```
//! use doorbell_rpc::{self as rpc, Channel, Server, Status};
//!
//! #[rpc::service(crate = "doorbell_rpc")]
//! trait Greeter {
//!     async fn hello(&self, name: String) -> Result<String, Status>;
//! }
//!
//! struct English;
//!
//! impl Greeter for English {
//!     async fn hello(&self, name: String) -> Result<String, Status> {
//!         Ok(format!("Hello, {name}!"))
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let greeter = GreeterServer::new(English);
//!     let server = Server::builder().add_service(greeter).open("udp:127.0.0.1:0").await?;
//!
//!     let greeter = GreeterClient::new(Channel::connect(server.name()).await?);
//!     assert_eq!(greeter.hello("Ann".to_owned()).await?, "Hello, Ann!");
//!     Ok(())
//! }
//! ```
//!
//! Most programs use this crate as `doorbell::rpc`; then the attribute needs no `crate = …`. The
//! attribute [`service`] documents what such a trait may have: streams in both directions, metadata
//! and deadlines, other codecs. A [`Router`] and a [`Client`] do the same without a trait.
//!
//! # Where to find what
//!
//! | for | see |
//! |---|---|
//! | servers: limits, shutdown, health | [`Server`], [`ServerBuilder`], [`Health`] |
//! | clients: limits, deadlines, reconnecting | [`Channel`], [`ChannelBuilder`] |
//! | typed calls and handlers without a trait | [`Method`], [`Client`], [`Router`] |
//! | requests, responses, streams, metadata | [`Request`], [`Response`], [`Streaming`], [`Metadata`] |
//! | errors | [`Status`], [`Code`] |
//! | retries, and several servers | [`Retries`], [`Servers`], [`WhenReady`] |
//! | who calls, and refusing calls | [`Caller`], [`Router::intercept`], [`ServerBuilder::intercept`] |
//! | traces | [`TraceContext`], [`trace_context`] |
//! | encoding | [`Codec`], [`Postcard`], [`Raw`] |
//!
//! # Features
//!
//! * `metrics`: calls are counted and timed through the crate `metrics`, for the recorder that the
//!   program installs, and `record_nic` copies a NIC's counters to that recorder. Off by default.
//!
//! # How it works
//!
//! ```text
//!  client program                                    server program
//!    Client (types)                                    handlers (types)
//!    tower layers                                      Router: method → handler
//!    Channel: permits, deadlines, reconnects           Server: sessions, limits
//!      │     calls in flight                             │     running handlers
//!      └── requests and answers: Active Messages ────────┘
//!      └── streams: pieces, with a window for each ──────┘
//!      └── bodies longer than a message: RDMA writes ────┘
//! ```
//!
//! A [`Channel`] keeps one connection to a server, and a session. In the session the server
//! remembers the client's latest calls, so that a call which is sent again after a lost connection
//! does not run twice. The server looks the method up in its [`Router`], and runs the handler at
//! once or as a task. Short bodies are part of the messages. Longer ones are written by RDMA into
//! memory that the receiver lends, and streams go piece by piece.
//!
//! The source has these folders and files, each of which uses only those below it:
//!
//! | folder or file | what it does |
//! |---|---|
//! | `client`, `server`, `health` | channels, servers, and the health service |
//! | `retries`, `servers` | a policy for retries, and the discovery of servers |
//! | `router`, `intercept` | finds the handler of a method, runs interceptors, decodes and encodes |
//! | `stream`, `bulk` | carry streams and long bodies |
//! | `observed`, `trace`, `meters`, `context` | spans, metrics, and what calls inherit |
//! | `owed` | notices to peers that wait for credits |
//! | `alarm` | timers, within a Tokio runtime and elsewhere |
//! | `wire` | the messages as they are sent |
//! | `message`, `metadata`, `caller`, `extensions`, `method`, `codec`, `status` | requests and responses, and what they consist of |

#![forbid(unsafe_code)]

mod alarm;
mod bulk;
mod caller;
mod client;
mod codec;
mod context;
mod deadlines;
mod extensions;
mod hasher;
mod health;
mod intercept;
mod message;
mod metadata;
mod meters;
mod method;
mod observed;
mod owed;
mod retries;
mod router;
mod server;
mod servers;
mod status;
mod stream;
mod trace;
mod usage;
mod wire;

pub use caller::Caller;
pub use client::{Backoff, Calling, Channel, ChannelBuilder, Client, Sending, WhenReady};
pub use codec::{Codec, CodecError, Postcard, Raw};
pub use context::{deadline, trace_context};
/// A trait that is a service, with its server and its client:
///
/// ```
/// use doorbell_rpc::{self as rpc, Channel, Server, Status};
///
/// #[rpc::service(crate = "doorbell_rpc")]
/// pub trait Calculator {
///     /// The quotient of two numbers.
///     #[rpc(idempotent)]
///     async fn divide(&self, dividend: u64, divisor: u64) -> Result<u64, Status>;
/// }
///
/// struct Exact;
///
/// impl Calculator for Exact {
///     async fn divide(&self, dividend: u64, divisor: u64) -> Result<u64, Status> {
///         dividend.checked_div(divisor).ok_or_else(|| Status::invalid_argument("by zero"))
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let service = CalculatorServer::new(Exact);
/// let server = Server::builder().add_service(service).open("udp:127.0.0.1:0").await?;
///
/// let calculator = CalculatorClient::new(Channel::connect(server.name()).await?);
/// assert_eq!(calculator.divide(12, 4).await?, 3);
/// # Ok(())
/// # }
/// ```
pub use doorbell_macros::service;
pub use doorbell_verbs::{CloseError, GivenUp, OpenError, WhyGivenUp};
pub use extensions::Extensions;
pub use health::{Health, HealthClient, ServingStatus};
pub use message::{Body, IntoStreamingRequest, Pieces, Request, Response, Streaming};
pub use metadata::{InvalidName, MOST_METADATA, Metadata, Value};
#[cfg(feature = "metrics")]
pub use meters::record_nic;
pub use method::{Method, MethodId};
pub use retries::Retries;
pub use router::Router;
pub use server::{Server, ServerBuilder};
pub use servers::{Servers, ServersBuilder};
pub use status::{Code, Status};
pub use trace::{InvalidTraceContext, TraceContext};
pub use usage::Usage;

/// Draws a random number that is not zero, and that nobody can guess. Who knows the number of a
/// session speaks for its client, so it comes from the system.
fn random() -> u64 {
    getrandom::u64().expect("Linux has random numbers once it has started").max(1)
}

/// Traits of other crates that code generated by [`service`](macro@service) names.
#[doc(hidden)]
pub mod generated {
    pub use futures_core::Stream;
    pub use tower_service::Service;
}
