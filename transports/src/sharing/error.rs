//! Errors of sharing an interface, and of asking for a service.

use std::io;

use doorbell_core::wire::ServiceId;
use thiserror::Error;

use super::message::SERVICES;
use super::tag::TAGS;
use crate::holder::{Holder, running_as};
use crate::sys::unix::own_user;

/// The error of a process that could not join those which share an interface.
#[derive(Debug, Error)]
pub enum SharingError {
    /// The interface is shared by processes of another user.
    #[error(
        "joining the processes that share `{key}`: the owner's name is that of {holder}, and this \
         process runs as {}; all of an interface's processes run as one user", running_as(.own)
    )]
    Stranger {
        /// The key of what was to be shared.
        key: Box<str>,
        /// The user and the process that have the owner's name.
        holder: Holder,
        /// The user of this process, if the user has a number of its own.
        own: Option<u32>,
    },
    /// As many processes share the interface as can be told apart.
    #[error(
        "joining the processes that share `{key}`: all {} tags are taken, one by each process{}; end \
         some, or use another interface",
        TAGS.end(), strangers(.stranger)
    )]
    Full {
        /// The key of what was to be shared.
        key: Box<str>,
        /// The first process that has a tag and is another user's, if there is any.
        stranger: Option<Holder>,
    },
    /// No interface has the given name.
    #[error(
        "joining the processes that share interface `{interface}`: there is no such interface; \
         `ip link` lists what there is: {}", .there.join(", ")
    )]
    NoInterface {
        /// The name of the interface.
        interface: Box<str>,
        /// The interfaces that exist here.
        there: Vec<String>,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The system refused a step of joining.
    #[error("joining the processes that share `{key}`: {what} failed")]
    System {
        /// The key of what was to be shared.
        key: Box<str>,
        /// The step that was tried.
        what: &'static str,
        /// The error that the system returned.
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

/// The error of a service that can't be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ServiceError {
    /// The process has asked for the service before.
    #[error("service {0} was asked for by this process already: stop that first")]
    Already(ServiceId),
    /// The process listens to as many services as it may.
    #[error("service {0} is beyond the {SERVICES} of a process: stop listening to some")]
    Full(ServiceId),
}
