//! The breakdown of an exchange's time by categories.

use doorbell_logp::Estimate;

/// The number of parts of a breakdown.
pub const PARTS: usize = 5;

/// A breakdown of an exchange's time, in nanoseconds, with estimates from several rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Breakdown {
    /// How many exchanges were timed together.
    pub exchanges: u64,
    /// The time spent on each category, which are the NIC with verbs, event notification, flow
    /// control, semantics and handlers.
    pub parts: [Estimate; PARTS],
    /// The sum of the parts in a round.
    pub total: Estimate,
    /// The time that was subtracted from the parts of a round for reading the counter.
    pub subtracted: Estimate,
    /// The time of an exchange with spans that are not watched.
    pub unwatched: Estimate,
    /// The time of an exchange without spans.
    pub uncounted: Estimate,
}
