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
//!
//! A [`Stream`] is read and written as a `TcpStream` is, whole or in halves. [`Stream::connect`]
//! and [`Listener::bind`] open a NIC each; a program with many streams opens an [`Endpoint`] once.
//!
//! # How much it holds
//!
//! | what | at most |
//! |---|---|
//! | received of a stream, and not read | [`window`](Config::window) bytes |
//! | sent of a stream, and not acknowledged | as many |
//! | an idle stream | some 12.4 KB with its queue pair, and no buffer |
//! | buffers for what comes next, of all streams of an endpoint | [`receives`](Config::receives), of a [`segment`](Config::segment) each |
//! | spare buffers of an endpoint | 64 |
//! | completions that wait for a turn | [`completions`](Config::completions), 96 bytes each |
//! | streams that nobody has accepted | [`backlog`](Config::backlog) a listener |
//!
//! # What goes wrong
//!
//! Errors are of the kinds that TCP gives, and their texts say what happened.
//!
//! | kind | when |
//! |---|---|
//! | [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused) | nobody listens there, or the listener refuses, and says why |
//! | [`TimedOut`](std::io::ErrorKind::TimedOut) | nothing comes back from there, or not any more |
//! | [`ConnectionReset`](std::io::ErrorKind::ConnectionReset) | the peer has gone without ending its stream |
//! | [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) | of a write, when the peer has dropped its stream, or this side has ended its own |
//! | [`InvalidData`](std::io::ErrorKind::InvalidData) | the peer is no end of a byte stream |

#![forbid(unsafe_code)]

mod config;
mod endpoint;
mod error;
mod hub;
mod link;
mod listener;
mod name;
mod shared;
mod stream;
mod wire;

pub use config::Config;
pub use endpoint::Endpoint;
pub use listener::{Incoming, Listener};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, Stream, WriteHalf};

pub use doorbell_verbs::ServiceId;
