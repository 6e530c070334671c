//! Operations and stores by Active Messages. A message aggregates many of either: operations are
//! sent in requests with a reply, stores in requests without.
//!
//! `outbox` collects the entries for one peer until they fill a message, in the encoding of
//! `entry`. `served` has the message handlers, which carry out the entries of peers, and keep
//! answers until the program takes them. The folder sends nothing itself: the world takes full
//! messages out of the outbox.

mod entry;
mod outbox;
mod served;

pub(crate) use entry::{LONGEST, LONGEST_HEAP, Operation};
pub(crate) use outbox::{Batch, Entry, Outbox, Row, Target};
pub(crate) use served::{Answer, ENDED, OPERATIONS, Refusals, STORES, Served, WAKE};
