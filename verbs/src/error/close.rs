//! Errors of closing.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::gone::ending_text;
use crate::link::{Ending, Private};

/// The most peers that the text of the error names.
const NAMED: usize = 4;

/// The error of an endpoint that is closed, on any floor, or of a server, and not all of whose
/// peers have taken what was sent to them.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("closing the endpoint: {}", found(*.peers, .given_up, *.stopped))]
pub struct CloseError {
    /// The number of peers that the endpoint was connected to.
    pub peers: usize,
    /// The peers that may not have taken everything.
    pub given_up: Vec<GivenUp>,
    /// The number of calls whose handlers were stopped, since the time was over that they had to
    /// end. Zero on all floors but RPC.
    pub stopped: usize,
}

impl CloseError {
    /// Returns the outcome of closing an endpoint. For layers of this workspace.
    #[doc(hidden)]
    pub fn unless_all_is_done(
        peers: usize,
        given_up: Vec<GivenUp>,
        stopped: usize,
    ) -> Result<(), Self> {
        match given_up.is_empty() && stopped == 0 {
            true => Ok(()),
            false => Err(Self { peers, given_up, stopped }),
        }
    }
}

/// Returns the text of what was not done when an endpoint was closed.
fn found(peers: usize, given_up: &[GivenUp], stopped: usize) -> String {
    let calls = if stopped == 1 { "1 call was" } else { &format!("{stopped} calls were") };
    let calls = (stopped > 0).then(|| format!("{calls} not done in time, and stopped"));
    let (lost, named) = (given_up.len(), Named(given_up));
    let lost = (lost > 0)
        .then(|| format!("what was sent last to {lost} of {peers} peers may be lost: {named}"));
    calls.into_iter().chain(lost).collect::<Vec<_>>().join("; and ")
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
    /// The peer had not taken everything when the time was over that the endpoint waits when it is
    /// closed: the `patience` of endpoints, the `linger` of byte streams, and ten seconds of an RPC
    /// server, behind its last answer.
    #[error(
        "it has not taken everything within {0:?}, the time for which a closing endpoint waits"
    )]
    Late(Duration),
    /// The NIC of the endpoint was closed first.
    #[error("the NIC here was closed first")]
    NicClosed,
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
