//! Long messages: the sender lends their bodies, and the receiver pulls them by RDMA reads.
//!
//! | file | what it does |
//! |---|---|
//! | `lending` | registers a body, and describes where it is |
//! | `service` | accepts the connections of peers over which either side pulls |
//! | `connection` | is this side's way to the connection of one peer, made when it is first needed |
//! | `transfer` | pulls one body in blocks, several of which are under way at a time |
//!
//! The connection is separate from the one for messages, so that long bodies hold up no others. The
//! side that has connected to the other for messages makes this connection, too, since it is sure
//! to know an address that leads there.

mod connection;
mod lending;
mod service;
mod transfer;

pub use connection::PullConnection;
pub use lending::{Lending, lend};
pub use service::PullService;
pub use transfer::Puller;
