//! Operations and stores by Active Messages, of which each aggregates many: operations are requests
//! with a reply, stores are requests without.

mod entry;
mod outbox;
mod served;

pub(crate) use entry::{LONGEST, LONGEST_HEAP, Operation};
pub(crate) use outbox::{Batch, Entry, Outbox, Row, Target};
pub(crate) use served::{Answer, ENDED, OPERATIONS, Refusals, STORES, Served, WAKE};
