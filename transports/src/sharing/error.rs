//! Why an interface is not shared, or a service not asked for.

use std::io;

use doorbell_core::wire::ServiceId;
use thiserror::Error;

use super::{SERVICES, TAGS};
use crate::holder::{Holder, running_as};
use crate::sys::unix::own_user;

/// Why a process does not share an interface.
#[derive(Debug, Error)]
pub enum SharingError {
    /// The interface has another user's processes on it.
    #[error(
        "joining the processes that share `{key}`: the owner's name is that of {holder}, and this \
         process runs as {}; all of an interface's processes run as one user", running_as(.own)
    )]
    Stranger {
        /// What was to be shared.
        key: Box<str>,
        /// The user and the process that have the owner's name.
        holder: Holder,
        /// The user of this process, if the user has a number of its own.
        own: Option<u32>,
    },
    /// There are as many processes as can be told apart.
    #[error(
        "joining the processes that share `{key}`: all {} tags are taken, one by each process{}; end \
         some, or use another interface",
        TAGS.end(), strangers(.stranger)
    )]
    Full {
        /// What was to be shared.
        key: Box<str>,
        /// The first of those who have a tag and are another user's, if there are any.
        stranger: Option<Holder>,
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

/// Returns the part of an error that names another user who has tags.
fn strangers(stranger: &Option<Holder>) -> String {
    let say = |holder: &Holder| format!(", and other users have some, as {holder} does");
    stranger.as_ref().map_or_else(String::new, say)
}

impl SharingError {
    pub(super) fn stranger(key: &str, holder: Holder) -> Self {
        Self::Stranger { key: key.into(), holder, own: own_user() }
    }

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
