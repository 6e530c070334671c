//! The plan of a measurement: how much is measured.

use thiserror::Error;

/// The number of rounds, pieces and requests of a [`Measurement`](crate::Measurement).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The number of rounds. More rounds make the intervals narrower.
    pub rounds: usize,
    /// The number of pieces of each kind that are timed in a round. The median of the pieces
    /// counts.
    pub pieces: usize,
    /// The most requests of a piece at a steady rate. A piece has fewer if requests take long.
    pub steady: usize,
    /// The requests that are sent before the rate counts as steady.
    pub warm_up: usize,
    /// The lengths of payloads, in bytes, between which the cost of a byte is measured. An empty list
    /// measures no such cost.
    pub lengths: Vec<usize>,
}

impl Plan {
    /// A plan that takes a second or so with messages of a microsecond.
    #[must_use]
    pub fn thorough() -> Self {
        let lengths = vec![1024, 4096, 16_384, 65_536];
        Self { rounds: 41, pieces: 32, steady: 256, warm_up: 512, lengths }
    }

    /// A plan that takes a tenth of a second or so with messages of a microsecond.
    #[must_use]
    pub fn quick() -> Self {
        Self { rounds: 15, pieces: 12, steady: 128, warm_up: 256, ..Self::thorough() }
    }

    /// Checks that the plan can be followed.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let counts = [
            ("rounds", self.rounds),
            ("pieces", self.pieces),
            ("steady", self.steady),
            ("warm_up", self.warm_up),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(PlanError::Zero { field });
        }
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() != self.lengths.len() || lengths.len() == 1 {
            return Err(PlanError::Lengths { found: self.lengths.clone() });
        }
        Ok(())
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::thorough()
    }
}

/// The reason why a plan can't be followed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A count of the plan is zero.
    #[error("Plan::{field} is 0: nothing would be measured")]
    Zero {
        /// The name of the field that is zero.
        field: &'static str,
    },
    /// The lengths of payloads don't tell the cost of a byte.
    #[error("Plan::lengths is {found:?}: it must be empty, or have two lengths or more, each once")]
    Lengths {
        /// The lengths of the plan.
        found: Vec<usize>,
    },
}
