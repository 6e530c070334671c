//! The error of opening a NIC, or an endpoint of any floor above.

use std::io;

use doorbell_core::cm::ConfigError;
use doorbell_core::nic::{NumberingError, ResourceError};
use doorbell_transports::sharing::SharingError;
use doorbell_transports::{DeviceError, SpecError};
use thiserror::Error;

use super::connect::ConnectError;
use super::listen::ListenRefused;
use super::register::RegisterError;
use crate::name::NameError;

/// The error of a NIC, or of an endpoint of a floor above, that was not opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A field of the configuration has a value that can't be used.
    #[error("{field} is {found}, and must be {allowed}: {why}")]
    Config {
        /// The name of the field.
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
    Device(#[from] DeviceError),
    /// The other processes of the interface can't be joined.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// The numbers that the interface's owner gave can't be used.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The connection manager's configuration can't be used.
    #[error(transparent)]
    Manager(#[from] ConfigError),
    /// The NIC has no room for another queue or memory region.
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
    /// The service number is taken, or was not granted.
    #[error(transparent)]
    Listen(#[from] ListenRefused),
    /// Memory of the endpoint was not registered.
    #[error("registering the memory of an endpoint")]
    Register(#[from] RegisterError),
    /// The text names no peer.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no way to the peer that the endpoint was to be a client of.
    #[error("looking for the device from which {name} is reached")]
    Towards {
        /// The name of the peer.
        name: String,
        /// Why there is no way.
        #[source]
        why: Box<ConnectError>,
    },
    /// The name of a peer does not tell the interface by which it is reached.
    #[error(
        "which interface leads to {name} can't be told from its name: name the device, as in \
         `open(\"packet:eth0\")`"
    )]
    Interface {
        /// The name of the peer.
        name: String,
    },
    /// No Tokio runtime is here, which the thing to be opened needs.
    #[error(
        "there is no Tokio runtime here, and {what} is served by the one in which it is opened: open \
         it in async code that a runtime runs, as within `Runtime::block_on`"
    )]
    NoRuntime {
        /// The thing that was to be opened.
        what: &'static str,
    },
    /// The runtime has ended in which the endpoint was opened.
    #[error(
        "the runtime in which the endpoint was opened has ended, and closed the endpoint: open endpoints \
         in a runtime that lasts for as long as they are used"
    )]
    RuntimeEnded,
    /// The NIC on which an endpoint is to be opened is closed.
    #[error("the NIC here was closed (`Nic::close`): open the endpoint on another")]
    NicClosed,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
    /// What the endpoint has for its peers is promised to those that it has.
    #[error("the {has} {what} are promised to peers, one or more to each: {advice}")]
    Promised {
        /// The things that are promised.
        what: &'static str,
        /// How many of them there are.
        has: usize,
        /// What to do.
        advice: &'static str,
    },
}
