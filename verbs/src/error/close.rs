//! Errors of closing.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::gone::ending_text;
use crate::link::{Ending, Private};

/// The most peers that the text of the error names.
const NAMED: usize = 4;

/// The error of an endpoint that is closed, and not all of whose peers have taken what was sent to
/// them.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "closing the endpoint: what was sent last to {} of {peers} peers may be lost: {}",
    .given_up.len(),
    Named(.given_up)
)]
pub struct CloseError {
    /// The number of peers that the endpoint was connected to.
    pub peers: usize,
    /// The peers that may not have taken everything.
    pub given_up: Vec<GivenUp>,
}

/// A peer that may not have taken what was sent to it last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// The name of the peer, or its number if this side has not mapped it.
    pub peer: String,
    /// The reason why the peer is waited for no longer.
    pub why: WhyGivenUp,
}

/// The reason why a closing endpoint waits for a peer no longer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum WhyGivenUp {
    /// The connection ended first.
    #[error("{}", ending_text(.0))]
    Gone(Ending),
    /// The peer had not handled everything when the endpoint's patience was over.
    #[error("it has not handled everything within {0:?}, the endpoint's `patience`")]
    Late(Duration),
    /// The runtime that serves the endpoint ended first.
    #[error("the runtime has ended in which the endpoint was opened")]
    RuntimeEnded,
}

impl WhyGivenUp {
    /// Returns the reason for a peer whose connection has ended in this way. For layers of this
    /// workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn of(ending: Option<Ending>) -> Self {
        Self::Gone(ending.unwrap_or(Ending::Left { private: Private::default() }))
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.peer, self.why)
    }
}

/// Shows the first peers of a list, and how many more there are.
struct Named<'g>(&'g [GivenUp]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, peer) in self.0.iter().take(NAMED).enumerate() {
            let separator = if number > 0 { "; " } else { "" };
            write!(f, "{separator}{peer}")?;
        }
        match self.0.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
