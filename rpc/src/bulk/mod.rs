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
//! that they hold up no messages. Memory is lent from a [`Pool`], which bounds how much there is;
//! bodies beyond wait. Whoever has lent memory takes it back when the sender has said `WRITTEN`, and not
//! before, even if nobody wants the body any more: a write into memory that is not lent ends the
//! connection, and with it the other bodies on their way.

mod line;
mod offered;
mod pool;
mod transfers;
mod word;

pub use line::{Line, Lines};
pub use offered::Offered;
pub use transfers::Transfers;
