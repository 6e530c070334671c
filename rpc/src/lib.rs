//! RPC for Tokio inside a cluster: methods are async functions or tower services, and calls go over
//! Active Messages, on shared memory, UDP or raw Ethernet.
//!
//! ```
//! use doorbell::rpc::{self, Channel, Server, Status};
//!
//! #[rpc::service]
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
//! [`service`] says what a trait may have: streams both ways, metadata and deadlines, other codecs.
//! A [`Router`] is the way without a trait.

#![forbid(unsafe_code)]

mod bulk;
mod client;
mod codec;
mod context;
mod health;
mod message;
mod metadata;
mod meters;
mod method;
mod observed;
mod router;
mod server;
mod status;
mod stream;
mod trace;
mod usage;
mod wire;

pub use client::{Backoff, Channel, ChannelBuilder, Client, Sending};
pub use codec::{Codec, CodecError, Postcard, Raw};
pub use context::{deadline, trace_context};
pub use doorbell_macros::service;
pub use health::{Health, HealthClient, ServingStatus};
pub use message::{Body, IntoStreamingRequest, Pieces, Request, Response, Streaming};
pub use metadata::{MOST_METADATA, Metadata, Value};
#[cfg(feature = "metrics")]
pub use meters::record_nic;
pub use method::{Method, MethodId};
pub use router::Router;
pub use server::{Server, ServerBuilder};
pub use status::{Code, Status};
pub use trace::{InvalidTraceContext, TraceContext};
pub use usage::Usage;

/// A number that nobody can guess, and not zero.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()).max(1)
}

/// Traits of other crates that the code of [`service`](macro@service) names.
#[doc(hidden)]
pub mod generated {
    pub use futures_core::Stream;
    pub use tower_service::Service;
}

/// The programs of the guide are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rpc.md")]
struct Guide;
