//! The errors of a job.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitStatus;

use doorbell_am::group::GroupError;
use doorbell_job::JobError;
use thiserror::Error;

use crate::causes::causes;
use crate::error::ErrorKind;
use crate::world::JoinError;

/// The error that a program returns in a process: any error type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a job did not succeed. If several processes failed, the error is that of the
/// first process that did not merely notice the end of another.
#[derive(Error)]
#[non_exhaustive]
pub enum RunError {
    /// The process could not find the others of its job, or not end with them.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A process could not become part of the world.
    #[error("process {rank} could not join: {why}")]
    Join {
        /// The rank of the process.
        rank: usize,
        /// The error of joining the world.
        why: JoinError,
    },
    /// The program of a process returned an error.
    #[error("process {rank}: {why}")]
    Failed {
        /// The rank of the process.
        rank: usize,
        /// The error that the program returned.
        why: BoxError,
    },
    /// The process ended since another had gone, which had ended because of the process that was the
    /// first to end.
    #[error("process {first} was the first to end, before the job was over; noticed here: {why}")]
    After {
        /// The rank of this process.
        rank: usize,
        /// The rank of the process that was the first to end.
        first: usize,
        /// The error by which this process noticed that another had gone.
        why: Box<RunError>,
    },
    /// The program of a process panicked.
    #[error("process {rank} panicked: {text}")]
    Panicked {
        /// The rank of the process.
        rank: usize,
        /// The message of the panic.
        text: String,
    },
    /// A process that this one started ended without success, after it had printed the reason on
    /// its standard error.
    #[error("process {rank} ended with {status}")]
    Exited {
        /// The rank of the process.
        rank: usize,
        /// The exit status of the process.
        status: ExitStatus,
    },
    /// A process that this one started ended with success while others still needed it.
    #[error("process {rank} ended with {status} before the job was over")]
    Early {
        /// The rank of the process.
        rank: usize,
        /// The exit status of the process.
        status: ExitStatus,
    },
    /// Processes could not be started, or did not report.
    #[error("starting {size} processes: {what}: {why}")]
    Start {
        /// How many processes the job was to have.
        size: usize,
        /// The step of the start that failed.
        what: String,
        /// The error that the system returned.
        why: io::Error,
    },
    /// The job has no processes, or more than a machine should run.
    #[error("a job of {count} processes: there must be at least 1, and {most} at most")]
    Count {
        /// How many processes the job was to have.
        count: usize,
        /// The most processes of a job on one machine.
        most: usize,
    },
    /// An environment variable has a value that makes no sense.
    #[error("{variable} is `{found}`: {expected}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// The value of the variable.
        found: String,
        /// The values that the variable may have.
        expected: &'static str,
    },
    /// A second job of processes was run in one program.
    #[error(
        "this program has run a job of processes before: each process starts the program from its \
         beginning, and would run that one again"
    )]
    SecondJob,
    /// A process that a launcher has started ran a second job of the launcher.
    #[error(
        "process {rank}, which {starter} has started, has run the job of its launcher before: a \
         process takes its place there once, so put all of the work into one `run`, or start the \
         launcher again"
    )]
    SecondOfLauncher {
        /// The rank of the process.
        rank: usize,
        /// The name of the launcher.
        starter: String,
    },
}

/// Says what `Display` says, and behind that the causes which are not named there: `fn main() ->
/// Result` shows an error in this way.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.to_string();
        let why: Option<&dyn std::error::Error> = match self {
            Self::Join { why, .. } => Some(why),
            Self::Failed { why, .. } => Some(&**why),
            _ => self.source(),
        };
        for cause in why.into_iter().flat_map(causes) {
            let cause = cause.to_string();
            if !said.contains(&cause) {
                said = format!("{said}: {cause}");
            }
        }
        f.write_str(&said)
    }
}

impl RunError {
    /// The rank of the process that has gone, if that is why this one has failed.
    pub fn gone(&self) -> Option<usize> {
        match self {
            // A process that has returned too early is told so itself.
            Self::Failed { rank, why } => gone(&**why).filter(|gone| gone != rank),
            Self::After { first, .. } => Some(*first),
            Self::Join {
                why: JoinError::Missing { rank, .. } | JoinError::Lost { rank, .. },
                ..
            } => Some(*rank),
            Self::Join { why: JoinError::Job(why), .. } | Self::Job(why) => match why {
                JobError::Ended { rank } => Some(*rank),
                _ => None,
            },
            _ => None,
        }
    }

    /// The rank of another process that has come to the end of its program too early, if that is
    /// why this one has failed.
    pub(super) fn early(&self) -> Option<usize> {
        let Self::Failed { rank, why } = self else { return None };
        let early =
            causes(&**why).find_map(|why| match why.downcast_ref::<crate::Error>()?.kind() {
                ErrorKind::Group(why) => crate::group_errors::early(why),
                _ => None,
            });
        early.filter(|early| early != rank)
    }

    /// Whether the error is about a collective that another process has given up.
    pub(super) fn is_given_up(&self) -> bool {
        let Self::Failed { rank, why } = self else { return false };
        causes(&**why).any(|why| match why.downcast_ref::<crate::Error>().map(crate::Error::kind) {
            Some(ErrorKind::Group(GroupError::GaveUp { whole, .. })) => whole != rank,
            _ => false,
        })
    }

    /// Whether the error only tells of the end of another process.
    pub(super) fn is_secondary(&self) -> bool {
        self.gone().is_some()
    }
}

/// The rank of the process that has gone, if that is at the root of an error, to which a program
/// may have added what it was about.
fn gone(why: &(dyn std::error::Error + 'static)) -> Option<usize> {
    causes(why).find_map(|why| why.downcast_ref::<crate::Error>()?.gone())
}
