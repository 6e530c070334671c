//! Bodies that are too long for a message: whoever receives one lends memory for it, and whoever
//! sends it writes it there by RDMA, without a copy on either side.
//!
//! | message | by | what it says |
//! |---|---|---|
//! | `CALL` or an answer with a length | the sender | a body of that length waits |
//! | `LEND` | the receiver | where to write it |
//! | `WRITTEN` | the sender | it is there |
//!
//! The writes go over a connection of the NIC that each client makes when it first needs one, so
//! that they hold up no messages. Memory is lent from a [`Pool`], which bounds how much there is;
//! bodies beyond wait.

mod line;
mod pool;
mod transfers;

pub use line::{Line, Lines};
pub use transfers::{Offered, Transfers};
