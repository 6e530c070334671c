//! The error of mapping memory of a peer's.

use thiserror::Error;

use crate::link::Ending;

/// The error of memory that the peer was to grant, and that was not mapped.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MapError {
    /// The connection ended before the grant came.
    #[error("the peer has not granted the memory, and never will: {0}")]
    Ended(Ending),
    /// The grant was dropped, since the peer granted more than this program has mapped. Or the grant
    /// may have been dropped: of a peer whose grants were dropped by hundreds, not all keys are
    /// remembered, and a grant of such a peer that has not come is waited for only for three
    /// seconds.
    #[error(
        "the grant was dropped, or may have been: of the grants of a peer that nobody waits for, \
         {most} are kept, and the peer made more. Wait for grants while the peer makes them, and have \
         it grant this one again"
    )]
    PushedOut {
        /// How many are kept.
        most: usize,
    },
}

impl From<Ending> for MapError {
    fn from(ending: Ending) -> Self {
        Self::Ended(ending)
    }
}
