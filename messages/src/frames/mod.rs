//! Messages as frames over datagrams, in EMP's way and in RMPP's.

mod endpoint;
mod engine;
mod error;
mod policy;
mod statistics;
mod wire;

pub use endpoint::{Endpoint, EndpointBuilder, Match, Message, Name, Peer, Receiving, Sending};
pub use error::{NameError, OpenError, PeerError, PeerLost, ReceiveError, SendError};
pub use policy::{Emp, Offload, Policy, Rmpp};
pub use statistics::Statistics;
