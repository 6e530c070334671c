//! Byte streams over queue pairs: what runs over TCP runs over Doorbell.
//!
//! ```
//! use doorbell::bytestream::{Listener, ServiceId, Stream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let mut listener = Listener::bind("udp:127.0.0.1:0", ServiceId(7)).await?;
//! let name = listener.local_name().to_owned(); // "udp:127.0.0.1:41234#0000000000000007"
//! tokio::spawn(async move {
//!     let (mut reads, mut writes) = listener.accept().await?.into_split();
//!     tokio::io::copy(&mut reads, &mut writes).await
//! });
//!
//! let mut stream = Stream::connect(&name).await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut echo = String::new();
//! stream.read_to_string(&mut echo).await?;
//! assert_eq!(echo, "hello");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod buffers;
mod closing;
mod config;
mod endpoint;
mod error;
mod halves;
mod hub;
mod link;
mod listener;
mod name;
mod poller;
mod slices;
mod stream;
mod wire;

pub use config::Config;
pub use endpoint::Endpoint;
pub use listener::{Incoming, Listener};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, Stream, WriteHalf};

pub use doorbell_verbs::ServiceId;
