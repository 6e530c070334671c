//! RPC for Tokio inside a cluster: methods are async functions or tower services, and calls go over
//! Active Messages, on shared memory, UDP or raw Ethernet.
//!
//! ```
//! use doorbell::rpc::{Channel, Client, Method, Router, Server};
//!
//! const GREET: Method<String, String> = Method::new("greeter/greet");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let greeter = Router::new().unary(GREET, |request| async move {
//!         Ok(format!("Hello, {}!", request.into_inner()))
//!     });
//!     let server = Server::builder().add_service(greeter).open("udp:127.0.0.1:0").await?;
//!
//!     let client = Client::new(Channel::connect(server.name()).await?);
//!     let greeting = client.unary(GREET, "Ann".to_owned()).await?.into_inner();
//!     assert_eq!(greeting, "Hello, Ann!");
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]

mod bulk;
mod client;
mod codec;
mod context;
mod message;
mod metadata;
mod method;
mod server;
mod status;
mod stream;
mod wire;

pub use client::{Backoff, Channel, ChannelBuilder, Client, Sending};
pub use codec::{Codec, CodecError, Postcard, Raw};
pub use context::deadline;
pub use message::{Body, Pieces, Request, Response, Streaming};
pub use metadata::{MOST_METADATA, Metadata, Value};
pub use method::{Method, MethodId};
pub use server::{Router, Server, ServerBuilder};
pub use status::{Code, Status};

/// A number that nobody can guess, and not zero.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()).max(1)
}
