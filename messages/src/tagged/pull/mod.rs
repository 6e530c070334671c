//! Long messages: the sender lends their bodies, and the receiver pulls them by RDMA reads.
//!
//! | file | what it does |
//! |---|---|
//! | `lending` | registers a body, and describes where it is |
//! | `service` | accepts the connections of peers over which either side pulls |
//! | `connection` | is this side's way to the connection of one peer, made when it is first needed |
//! | `near` | reads the memory of processes of this machine, where the kernel allows it |
//! | `target` | is memory of the program that a body is pulled into |
//! | `transfer` | pulls one body in blocks, several of which are under way at a time, or by a copy |
//!
//! The connection is separate from the one for messages, so that long bodies hold up no others. The
//! side that has connected to the other for messages makes this connection, too, since it is sure
//! to know an address that leads there. If it ends, the rest of a body is pulled over another one.

mod connection;
mod error;
mod lending;
mod near;
mod service;
mod target;
mod transfer;

pub use connection::PullConnection;
pub use error::PullError;
pub use lending::{Lending, lend};
pub use near::{NearProcess, NotItsMemory, Secret};
pub use service::PullService;
pub use target::{RegionPart, Target};
pub use transfer::{Connections, Pulled, Puller};
