//! A breakdown of the host's time of an exchange by categories.

use doorbell_am_costs::costs::Cost;
use doorbell_logp::Estimate;

/// The categories, in the order in which they are told.
pub const COSTS: [Cost; 5] =
    [Cost::Base, Cost::Notification, Cost::FlowControl, Cost::Semantics, Cost::Handlers];

/// A breakdown of an exchange's time, in nanoseconds, with estimates from several rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Breakdown {
    /// How many exchanges were timed together.
    pub exchanges: u64,
    /// The time spent on each category, in the order of [`COSTS`].
    pub parts: [Estimate; COSTS.len()],
    /// The sum of the parts in a round.
    pub total: Estimate,
    /// The time that was subtracted from the parts of a round for reading the counter.
    pub subtracted: Estimate,
    /// The time of an exchange with spans that are not watched.
    pub unwatched: Estimate,
    /// The time of an exchange without spans.
    pub uncounted: Estimate,
}
