//! The error of opening a NIC.

use std::io;

use doorbell_core::cm::ConfigError;
use doorbell_core::nic::{NumberingError, ResourceError};
use doorbell_transports::sharing::SharingError;
use doorbell_transports::{OpenError, SpecError};
use thiserror::Error;

/// The error of a NIC that could not be opened.
#[derive(Debug, Error)]
pub enum NicError {
    /// A field of the configuration has a value that can't be used.
    #[error("{field} is {found}, and must be {allowed}: {why}")]
    Config {
        /// The name of the field, as in [`Config`](crate::Config).
        field: &'static str,
        /// The value that the field has.
        found: String,
        /// The values that the field may have.
        allowed: String,
        /// The reason for the limit.
        why: &'static str,
    },
    /// The text names no device.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The device can't be opened.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The other processes of the interface can't be joined.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// The numbers that the interface's owner gave can't be used.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The connection manager's configuration can't be used.
    #[error(transparent)]
    Manager(#[from] ConfigError),
    /// The completion queue for futures can't be made.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// A system call has failed.
    #[error("{what}")]
    System {
        /// The operation that was tried.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The other processes of the interface do not answer.
    #[error("{0}")]
    Alone(doorbell_transports::Trouble),
}
