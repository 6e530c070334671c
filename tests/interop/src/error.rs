//! Why there is no guest, or why it does not do what it is asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use doorbell_kit::lab::{LabError, passed_over};
use thiserror::Error;

use crate::output::Output;

/// What went wrong.
#[derive(Debug, Error)]
pub enum Error {
    /// A program is not there, or can't be started.
    #[error("`{program}` can't be run ({source}): `apt-get install {package}` installs it")]
    Missing {
        /// Its name.
        program: &'static str,
        /// The package that it comes in.
        package: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Debian's packages can't be found, or not be had.
    #[error("no packages for the guest: {why}; `apt-get update` and a network may help")]
    Packages {
        /// What was tried, and what came of it.
        why: String,
    },
    /// A program did not do it.
    #[error("{command} failed: {said}")]
    Failed {
        /// The command.
        command: String,
        /// What it said.
        said: String,
    },
    /// A file or folder can't be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The packages are not what they used to be.
    #[error(
        "the packages have no {what}: the list of packages or modules is to be brought up to date"
    )]
    Lacking {
        /// What was looked for.
        what: String,
    },
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The guest did not come up.
    #[error("the guest did not come up: {why}; its console ends with:\n{console}")]
    Boot {
        /// What happened instead.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// The guest is there no more.
    #[error("the guest is gone; its console ends with:\n{console}")]
    Gone {
        /// The last lines of its console.
        console: String,
    },
    /// A command in the guest does not end, or not say what it should, in the time given.
    #[error("`{command}` in the guest: no {awaited} in {at_most:?}; by then\n{output}")]
    Late {
        /// The command.
        command: String,
        /// What was waited for.
        awaited: String,
        /// How long.
        at_most: Duration,
        /// What it has said.
        output: Output,
    },
    /// A command in the guest ended without saying what it should.
    #[error("`{command}` in the guest ended, with no {awaited}; it was\n{output}")]
    Ended {
        /// The command.
        command: String,
        /// What was waited for.
        awaited: String,
        /// What it said.
        output: Output,
    },
    /// The namespaces are not what they should be.
    #[error(transparent)]
    Lab(#[from] LabError),
}

impl Error {
    /// Whether this machine lacks something that a guest needs and that can be installed.
    pub fn is_for_want(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Packages { .. } | Self::Lacking { .. })
    }
}

/// What there is, or nothing where this machine lacks what it takes: then that is said aloud and
/// counted, and an error if the environment variable `CI` is set.
///
/// # Panics
/// When anything else went wrong.
pub fn or_pass_over<T>(made: Result<T, Error>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(why) => {
            let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(why.is_for_want() && !integration, "no guest to test with: {why}");
            passed_over(&format!("no guest to test with: {why}"));
            None
        }
    }
}
