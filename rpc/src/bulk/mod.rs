//! Bodies that are too long for a message: whoever receives one lends memory for it, and whoever
//! sends it writes it there by RDMA, without a copy on either side.
//!
//! | message | by | what it says |
//! |---|---|---|
//! | `CALL` or an answer with a length | the sender | a body of that length waits |
//! | `LEND` | the receiver | where to write it |
//! | `WRITTEN` | the sender | nothing writes there any more, and whether the body is there |
//!
//! The writes go over a connection of the NIC that each client makes when it first needs one, so
//! that they hold up no messages. Memory is lent from a [`Share`] of a pool, which bounds how much
//! there is, and how much of it one peer may have; bodies beyond wait. Whoever has lent memory takes it
//! back when the sender has said `WRITTEN`, or has not said so [in time](time_for); and not before, even
//! if nobody wants the body any more: a write into memory that is not lent ends the connection, and
//! with it the other bodies on their way.

mod line;
mod offered;
mod pool;
mod transfers;
mod word;

use std::time::Duration;

pub use line::{Line, Lines};
pub use offered::Offered;
#[cfg(test)]
pub use pool::Pool;
pub use pool::{Reserved, Share};
pub use transfers::Transfers;

/// How long a peer may take to send what memory was lent or reserved for: ten seconds, and a second
/// for each MiB. A peer that takes longer has stopped, and others wait for the memory.
pub fn time_for(len: usize) -> Duration {
    Duration::from_secs(10 + (len >> 20) as u64)
}
