//! Why an interface is not shared, or a service not asked for.

use std::io;

use doorbell_core::wire::ServiceId;
use thiserror::Error;

use super::{SERVICES, TAGS};

/// Why a process does not share an interface.
#[derive(Debug, Error)]
pub enum SharingError {
    /// The interface has another user's processes on it.
    #[error(
        "joining the processes that share `{key}`: its owner is another user's process; run all of an interface's processes \
         as one user (`ss -xlp src @doorbell-owner/{key}` shows whose it is)"
    )]
    Stranger {
        /// What was to be shared.
        key: Box<str>,
    },
    /// There are as many processes as can be told apart.
    #[error(
        "joining the processes that share `{key}`: all {} tags are taken, one by each process; end \
         some, or use another interface",
        TAGS.end()
    )]
    Full {
        /// What was to be shared.
        key: Box<str>,
    },
    /// There is no such interface.
    #[error(
        "joining the processes that share interface `{interface}`: there is no such interface; \
         `ip link` lists what there is: {}", .there.join(", ")
    )]
    NoInterface {
        /// What was to be shared.
        interface: Box<str>,
        /// The interfaces that there are.
        there: Vec<String>,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("joining the processes that share `{key}`: {what} failed")]
    System {
        /// What was to be shared.
        key: Box<str>,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SharingError {
    pub(super) fn system(key: &str, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { key: key.into(), what, source }
    }
}

/// Why a service was not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ServiceError {
    /// This process has asked for it before.
    #[error("service {0} was asked for by this process already: stop that first")]
    Already(ServiceId),
    /// There is no room for one more.
    #[error("service {0} is beyond the {SERVICES} of a process: stop listening to some")]
    Full(ServiceId),
}
