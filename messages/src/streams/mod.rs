//! Messages as streams: sent piece by piece, and received piece by piece while they come.
//!
//! A message is begun, sent in pieces of any size, and ended. It runs a handler at its receiver,
//! which starts with the first packet and receives pieces into places that it chooses. Pieces need
//! not be the same on both sides. That is the interface of Fast Messages 2, by Lauria, Pakin and
//! Chien, as asynchronous functions.
//!
//! ```
//! use doorbell_messages::streams::{Endpoint, Incoming, StreamId};
//!
//! const FILE: StreamId = StreamId::new("file");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let server = Endpoint::builder()
//!         .handler(FILE, |mut message: Incoming| async move {
//!             let mut header = [0; 8];
//!             message.receive_into(&mut header).await?;
//!             let body = message.receive(u64::from_be_bytes(header) as usize).await?;
//!             println!("a file of {} bytes", body.len());
//!             Ok(())
//!         })
//!         .open("udp:127.0.0.1:0")
//!         .await?;
//!     let client = Endpoint::open("udp:127.0.0.1:0").await?;
//!     let peer = client.connect(server.name()).await?;
//!     let body = vec![7; 100_000];
//!     let mut message = peer.begin(FILE).await?;
//!     message.send((body.len() as u64).to_be_bytes()).await?;
//!     message.send_bytes(body).await?;
//!     message.end_handled().await?;
//!     Ok(())
//! }
//! ```
//!
//! # Order, interleaving and errors
//!
//! The bytes of a message come once, and in order. Messages don't wait for each other: handlers
//! interleave, and a long message, or a handler that has stopped to receive, holds up no other. A
//! message that is dropped without an end is an [error](ReceiveError::Abandoned) at its receiver,
//! and a handler that returns an error, panics, or returns before the end of its message is an
//! error at its sender.
//!
//! # Pacing
//!
//! A handler that receives slowly slows the sender of its message down. A
//! [paced](EndpointBuilder::paced) endpoint hands bytes on to handlers only when the program
//! [extracts](Endpoint::extract) them. Nothing is lost.
//!
//! # How much memory it holds
//!
//! Bytes wait for handlers within the [window](EndpointBuilder::window) of their message, and each
//! peer has no more than a number of [messages](EndpointBuilder::messages) open. So what one peer
//! may have an endpoint hold is
//!
//! > window × messages,
//!
//! which is 16 MiB unless configured. Each packet counts 128 bytes more than it has. A packet that
//! fills at least a quarter of the buffer in which it came keeps the buffer, so that a peer that
//! sends only packets of that size may have four times as much held. On the sending side, a
//! message holds one packet.
//!
//! # The layers of this folder
//!
//! | file | what it is for |
//! |---|---|
//! | `id`, `limits`, `error`, `wire` | data: names, settings, errors, words |
//! | `hub`, `control` | signals to the endpoint's task; what peers are told beside messages |
//! | `sending`, `held`, `inbox`, `receiving` | the messages to a peer and the bytes that wait for more, a message that comes, and all that come from a peer |
//! | `link` | the connection to one peer |
//! | `message`, `peer`, `incoming` | the program's handles |
//! | `runner`, `pacer`, `state`, `handlers` | the handlers that run, packets that wait to be extracted, and all that comes |
//! | `endpoint`, `builder` | endpoints: opened, connected, closed |

mod builder;
mod control;
mod endpoint;
mod error;
mod handlers;
mod held;
mod hub;
mod id;
mod inbox;
mod incoming;
mod limits;
mod link;
mod message;
mod pacer;
mod peer;
mod receiving;
mod runner;
mod sending;
mod state;
mod wire;

pub use builder::EndpointBuilder;
pub use endpoint::{Endpoint, Statistics};
pub use error::{
    CloseError, ConnectError, GivenUp, HandlerError, OpenError, ReceiveError, SendError, Unsent,
    WhyGivenUp, WhyGone,
};
pub use id::StreamId;
pub use incoming::Incoming;
pub use message::Message;
pub use peer::Peer;
