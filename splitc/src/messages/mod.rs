//! Operations by Active Messages: many in each, as requests with answers, and stores without.

mod entry;
mod outbox;
mod served;

pub(crate) use entry::{LONGEST, LONGEST_HEAP, Operation};
pub(crate) use outbox::{Batch, Entry, Outbox, Row, Target};
pub(crate) use served::{Answer, OPERATIONS, STORES, Served, WAKE, locked};
