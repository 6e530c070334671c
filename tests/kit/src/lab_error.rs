//! The errors of network namespaces and the cables between them.

use std::io;

use thiserror::Error;

/// The reason why a lab can't be made, or can't be configured as asked.
#[derive(Debug, Error)]
pub enum LabError {
    /// A program is missing, or can't be started.
    #[error("`{program}` can't be run ({source}): `apt-get install {package}` installs it")]
    Missing {
        /// The name of the program.
        program: &'static str,
        /// The package that it comes in.
        package: &'static str,
        /// The error that the system returns.
        source: io::Error,
    },
    /// A program has run and failed.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The command line of the program.
        command: String,
        /// The text that the program wrote to standard error.
        said: String,
    },
    /// A feature of an interface can't be switched on or off.
    #[error("{feature} of {interface} stays what it is: `ethtool -k {interface}` says more")]
    Fixed {
        /// The name of the interface.
        interface: String,
        /// The name of the feature, as `ethtool -k` gives it.
        feature: String,
    },
    /// The system refuses to make or to enter a network namespace.
    #[error("{what}: {source}; it takes root, or a system that lets users make namespaces")]
    System {
        /// The action that the system refuses.
        what: &'static str,
        /// The error that the system returns.
        source: io::Error,
    },
}

impl LabError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
