//! Why a job did not succeed.

use std::io;
use std::process::ExitStatus;

use thiserror::Error;

use crate::world::JoinError;

/// What a program's processes may fail with: any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a job did not succeed. If several processes failed, the error is that of the first one that
/// did not merely notice the end of another.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A process could not become part of the world.
    #[error("process {rank} could not join: {why}")]
    Join {
        /// The rank of the process.
        rank: usize,
        /// Why not.
        #[source]
        why: JoinError,
    },
    /// The program of a process returned an error.
    #[error("process {rank}: {why}")]
    Failed {
        /// The rank of the process.
        rank: usize,
        /// What it returned.
        why: BoxError,
    },
    /// The program of a process panicked.
    #[error("process {rank} panicked: {text}")]
    Panicked {
        /// The rank of the process.
        rank: usize,
        /// What it said.
        text: String,
    },
    /// A process that was started ended without success. It has said why itself, on its standard
    /// error.
    #[error("process {rank} ended with {status}")]
    Exited {
        /// The rank of the process.
        rank: usize,
        /// How it ended.
        status: ExitStatus,
    },
    /// Processes could not be started, or did not report.
    #[error("starting {size} processes: {what}")]
    Start {
        /// How many processes there were to be.
        size: usize,
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The environment says nothing that makes sense.
    #[error("{variable} is `{found}`: {expected}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A second job of processes was run in one program.
    #[error(
        "this program has run a job of processes before: each process starts the program from its \
         beginning, and would run that one again"
    )]
    SecondJob,
}

impl RunError {
    /// Whether the error only tells of the end of another process.
    pub(super) fn is_secondary(&self) -> bool {
        match self {
            Self::Failed { why, .. } => {
                let why = why.downcast_ref::<crate::Error>();
                why.is_some_and(|why| why.gone().is_some())
            }
            Self::Join { why, .. } => matches!(why, JoinError::Missing { .. }),
            _ => false,
        }
    }
}
