//! What all streams of an endpoint share, and what needs no stream to be known: the NIC, the
//! configuration, the runtime of the background tasks, and the receive buffers.
//!
//! Links are given a [`Shared`] when they are made. The folder calls nothing above it.

mod buffers;

use doorbell_verbs::Nic;
use tokio::runtime::Handle;

pub(crate) use buffers::{BESIDE, Buffers, RECEIVE};

use crate::config::Config;

/// The NIC, the configuration, the runtime and the buffers of an endpoint.
pub(crate) struct Shared {
    pub nic: Nic,
    pub config: Config,
    pub buffers: Buffers,
    /// The runtime in which the background tasks of the endpoint run.
    pub runtime: Handle,
}
