//! Byte streams over queue pairs, for programs that were written for TCP. A [`Stream`] is read and
//! written as Tokio's `TcpStream` is, over shared memory, UDP or raw Ethernet.
//!
//! ```
//! use doorbell_bytestream::{Listener, ServiceId, Stream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let mut listener = Listener::open("udp:127.0.0.1:0", ServiceId(7)).await?;
//! let name = listener.name().clone(); // "udp:127.0.0.1:41234#0000000000000007"
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
//! # Where to find what
//!
//! | for | see |
//! |---|---|
//! | one stream, whole or in halves | [`Stream`], [`ReadHalf`], [`WriteHalf`], [`OwnedReadHalf`], [`OwnedWriteHalf`] |
//! | accepting streams | [`Listener`], [`Incoming`] |
//! | many streams on one NIC | [`Endpoint`]: [`Stream::connect`] and [`Listener::open`] open a NIC each |
//! | windows, buffers, time limits | [`Config`], [`EndpointBuilder`] |
//!
//! # How it works
//!
//! ```text
//!   program:   Stream, ReadHalf, WriteHalf            Listener
//!                │ bytes                                │ accepts
//!   link:      unread bytes │ window │ writes        Endpoint: one NIC, many streams
//!                │ one queue pair a stream              │
//!   hub:       one completion queue, shared receive buffers, for all streams
//!                │
//!   NIC:       shm, udp, packet, packet-v2
//! ```
//!
//! Each stream has a queue pair. A write becomes sends of at most a segment each; short writes are
//! gathered while others are under way. The peer's program reads from the buffers in which the
//! sends arrived. A window of bytes bounds how much is under way: the peer reports how much its
//! program has read. All streams of an [`Endpoint`] share a NIC, a completion queue and the receive
//! buffers.
//!
//! # How much memory streams take
//!
//! | what | at most |
//! |---|---|
//! | bytes of a stream that were received and not read | `Config::window`, in twice as much memory and two segments |
//! | bytes of a stream that were sent and not acknowledged | the peer's window |
//! | an idle stream | some 12.4 KB with its queue pair, and no buffer |
//! | receive buffers of an endpoint, for all its streams | [`receives`](Config::receives), of a [`segment`](Config::segment) each |
//! | spare buffers of an endpoint | 64 |
//! | completions that wait to be handled | [`completions`](Config::completions), 96 bytes each |
//! | streams that the program has not accepted | [`backlog`](Config::backlog) for each listener |
//!
//! # Errors
//!
//! Errors have the kinds that TCP gives, and their texts say what happened.
//!
//! | kind | when |
//! |---|---|
//! | [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused) | nothing listens there, or the listener refuses and says why |
//! | [`TimedOut`](std::io::ErrorKind::TimedOut) | the peer does not answer, or does not answer any more |
//! | [`ConnectionReset`](std::io::ErrorKind::ConnectionReset) | the peer is gone without ending its stream |
//! | [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) | a write, after the peer has dropped its stream or this end has shut its own down |
//! | [`InvalidData`](std::io::ErrorKind::InvalidData) | the peer is no end of a byte stream, or broke the protocol |

#![forbid(unsafe_code)]

mod builder;
mod closing;
mod config;
mod endpoint;
mod error;
mod hub;
mod link;
mod listener;
mod shared;
mod stream;
mod wire;

pub use builder::EndpointBuilder;
pub use config::Config;
pub use endpoint::Endpoint;
pub use listener::{Incoming, Listener};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, Stream, WriteHalf};

pub use doorbell_verbs::{CloseError, GivenUp, Name, NameError, ServiceId, WhyGivenUp};
