//! The events that were taken from the NIC.

use std::collections::BTreeSet;

/// The events that were taken from the NIC, of those that it must not repeat.
#[derive(Default)]
pub struct EventRecord {
    /// The numbers of the queue pairs that have told of their last receive from the shared queue,
    /// since they were reset or made.
    pub last: BTreeSet<u32>,
    /// Whether an event is due when the shared queue runs low.
    pub wants_low: bool,
}
