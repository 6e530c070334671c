//! Messages as frames over datagrams, in the ways of two papers: EMP's and RMPP's.
//!
//! An [`Endpoint`] has a [`Name`], and whoever has the name sends to it: there is no connection. A
//! receive is posted with room for a message, and takes the first message that [matches](Match).
//! Until a receive is posted, a message stays at its sender.
//!
//! ```
//! use doorbell_messages::frames::{Endpoint, Match, Rmpp};
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let open = || Endpoint::builder().policy(Rmpp::default().early(9)).open("udp:127.0.0.1:0");
//!     let (near, far) = (open().await?, open().await?);
//!     let receiving = far.receive_at_most(1 << 20, Match::exactly(7));
//!     near.connect(far.name()).await?.send(7, vec![1; 100_000]).await?;
//!     assert_eq!(receiving.await?.body.len(), 100_000);
//!     Ok(())
//! }
//! ```
//!
//! How much of a message may come at a time, and how its arrival is confirmed, is up to a
//! [`Policy`]: [`Emp`] or [`Rmpp`].
//!
//! | folder or file | what it does |
//! |---|---|
//! | `endpoint` | endpoints, peers, posted sends and receives; the driver |
//! | `engine` | the mechanism, without I/O: messages on their way between two hosts |
//! | `policy` | what the two protocols decide |
//! | `wire` | frames: values to bytes, bytes to values |
//! | `name`, `statistics`, `error` | names of endpoints, counts, and errors |

mod endpoint;
mod engine;
mod error;
mod name;
mod policy;
mod statistics;
mod wire;

pub use endpoint::{Endpoint, EndpointBuilder, Match, Message, Peer, Receiving, Sending};
pub use error::{
    CloseError, ConnectError, GivenUp, NameError, OpenError, ReceiveError, SendError, Unsent,
    WhyGivenUp, WhyGone,
};

pub use doorbell_verbs::Name;
pub use policy::{Emp, Offload, Policy, Rmpp};
pub use statistics::Statistics;
