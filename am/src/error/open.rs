//! Errors of opening bundles and endpoints.

use std::io;

use doorbell_verbs::{ConnectError, ListenRefused, NicError, RegisterError, ResourceError};
use thiserror::Error;

use crate::name::NameError;

/// The error of a bundle or an endpoint that was not opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The device can't be opened, or the NIC's configuration is not valid.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// The text names no endpoint.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is no way to the peer that the endpoint was to be a client of.
    #[error("looking for the device from which {name} is reached")]
    Towards {
        /// The name of the peer.
        name: String,
        /// Why there is no way.
        #[source]
        why: ConnectError,
    },
    /// The name of a peer does not tell the interface by which it is reached.
    #[error(
        "which interface leads to {name} can't be told from its name: open the endpoint on a device, as \
         in `Endpoint::open(\"packet:eth0\", …)`"
    )]
    Interface {
        /// The name of the peer.
        name: String,
    },
    /// The NIC has no room for another queue or memory region.
    #[error(transparent)]
    Resources(#[from] ResourceError),
    /// The segment was not registered.
    #[error("registering the segment of the endpoint (`EndpointConfig::segment`)")]
    Segment(#[from] RegisterError),
    /// The service number is taken by another endpoint of the NIC.
    #[error(transparent)]
    Listen(#[from] ListenRefused),
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
    /// The runtime has ended in which the endpoint was opened.
    #[error(
        "the runtime in which the endpoint was opened has ended, and closed the endpoint: open endpoints \
         in a runtime that lasts for as long as they are used"
    )]
    RuntimeEnded,
    /// No Tokio runtime is here, which the thing to be opened needs.
    #[error(
        "there is no Tokio runtime here, and {what} is served by the one in which it is opened: open \
         it in async code that a runtime runs, as within `Runtime::block_on`"
    )]
    NoRuntime {
        /// The thing that was to be opened.
        what: &'static str,
    },
    /// No Tokio runtime is here, and none could be made.
    #[error("starting a thread with a runtime for the bundle, where there is no runtime")]
    Runtime(#[from] io::Error),
    /// A field of the configuration has a value that is not allowed.
    #[error("{field} is {found}, and must be {expected}: {why}")]
    Config {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        found: String,
        /// The bound that the value must keep.
        expected: String,
        /// The reason for the bound.
        why: &'static str,
    },
    /// A completion queue of the bundle has no entry for another peer.
    #[error(
        "the {has} entries of the bundle (`BundleConfig::receives`) are one each for as many peers: unmap \
         some, or configure more"
    )]
    Completions {
        /// The number of entries.
        has: usize,
    },
    /// The endpoint has no receives left for another peer.
    #[error(
        "the {0} receives of the endpoint (`EndpointConfig::receives`) are promised to its peers, and \
         none gives one up: unmap some, or configure more"
    )]
    Receives(usize),
}
