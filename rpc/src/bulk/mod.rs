//! Bodies that are too long for a message. The receiver registers memory, and the sender writes the
//! body there by RDMA, without a copy on either side.
//!
//! | message | sent by | what it says |
//! |---|---|---|
//! | `CALL`, or an answer, with a length | the sender | a body of that length is waiting |
//! | `LEND` | the receiver | the remote memory into which to write the body |
//! | `WRITTEN` | the sender | nothing is written there any more, and whether the body is complete |
//!
//! The writes go over a [`BulkConnection`] that each client makes when it first needs one, so that
//! long bodies do not hold up messages. The receiver takes the memory from a [`Share`] of a pool,
//! which bounds how much memory there is, and how much one peer may have. Bodies beyond that wait for as
//! long as others give memory back.
//!
//! The receiver revokes the registration when `WRITTEN` arrives, or when it has not arrived [in
//! time](time_for). It never does so earlier, even if nobody wants the body any more: a write into
//! memory that is not registered would break the connection, and with it the transfers of other
//! bodies.
//!
//! | file | what it does |
//! |---|---|
//! | `offered` | sends one body, from the offer to `WRITTEN` |
//! | `transfers` | receives bodies, and is the table of all bodies on their way |
//! | `notice` | sends `WRITTEN` |
//! | `connections` | accepts the bulk connections of a server's clients |
//! | `connection` | is one bulk connection: registers memory, and writes |
//! | `pool`, `room` | bounds the memory, and says why there is none |
//!
//! The folder is used by clients and servers, and calls neither.

mod connection;
mod connections;
mod notice;
mod offered;
mod pool;
mod room;
mod transfers;

use std::time::Duration;

pub use connection::BulkConnection;
pub use connections::BulkConnections;
pub use offered::Offered;
#[cfg(test)]
pub use pool::Pool;
pub use pool::{Reserved, Share};
pub use room::NoRoom;
pub use transfers::Transfers;

/// The time within which a peer must send the `len` bytes for which memory was lent or reserved:
/// thirty seconds, and one more for each MiB. A peer that takes longer has stopped, while others wait
/// for the memory.
pub fn time_for(len: usize) -> Duration {
    Duration::from_secs(30 + (len >> 20) as u64)
}
