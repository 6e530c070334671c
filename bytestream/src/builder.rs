//! Opening endpoints, with settings that differ from the defaults.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Config as NicConfig, Nic};

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::of_open;
use crate::hub::Owner;

/// A builder of endpoints. Every setting has a default, and [`open`](Self::open) opens the
/// endpoint.
///
/// ```
/// use doorbell_bytestream::Endpoint;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let endpoint = Endpoint::builder().window(64 << 10).backlog(1024).open("shm").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, Debug)]
#[must_use = "nothing is open before `open`"]
pub struct EndpointBuilder {
    config: Config,
    nic: NicConfig,
}

impl Endpoint {
    /// Opens an endpoint with a NIC of its own on a device, both as configured by default.
    ///
    /// The device is `shm` for processes of the same machine, `udp:192.0.2.7` or a host's name for
    /// any network, `packet:eth0` or `packet-v2:eth0` for raw Ethernet: see [`Nic::open`].
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a runtime.
    pub async fn open(device: &str) -> io::Result<Self> {
        Self::builder().open(device).await
    }

    /// Opens an endpoint on a NIC that is open, which the program may also use in other ways.
    ///
    /// # Errors
    /// When the NIC has no room, or this is called outside of a runtime.
    pub async fn on(nic: &Nic) -> io::Result<Self> {
        Self::builder().on(nic).await
    }

    /// Makes a builder, by which an endpoint is configured and opened.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl EndpointBuilder {
    /// Sets the most bytes of a stream that may be [under way](field@Config::window) to this end, or
    /// received and not read; 1 MiB by default.
    pub fn window(self, bytes: usize) -> Self {
        Self { config: Config { window: bytes, ..self.config }, ..self }
    }

    /// Sets the most bytes of a [message](field@Config::segment); 32 KiB by default.
    pub fn segment(self, bytes: usize) -> Self {
        Self { config: Config { segment: bytes, ..self.config }, ..self }
    }

    /// Sets the most [receive buffers](field@Config::receives) that all streams share; 256 by
    /// default.
    pub fn receives(self, buffers: usize) -> Self {
        Self { config: Config { receives: buffers, ..self.config }, ..self }
    }

    /// Sets how long a stream that was dropped [goes on](field@Config::linger) sending; ten seconds
    /// by default.
    pub fn linger(self, time: Duration) -> Self {
        Self { config: Config { linger: time, ..self.config }, ..self }
    }

    /// Sets the most streams that peers have opened and the program has not
    /// [accepted](field@Config::backlog); 128 a listener by default.
    pub fn backlog(self, streams: usize) -> Self {
        Self { config: Config { backlog: streams, ..self.config }, ..self }
    }

    /// Sets the most [completions](field@Config::completions) that may wait to be handled; 4096 by
    /// default.
    pub fn completions(self, most: usize) -> Self {
        Self { config: Config { completions: most, ..self.config }, ..self }
    }

    /// Replaces the whole configuration of the endpoint.
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Sets the configuration of the NIC that [`open`](Self::open) opens.
    pub fn nic(self, nic: NicConfig) -> Self {
        Self { nic, ..self }
    }

    /// Opens the endpoint, with a NIC of its own on a [device](Nic::open).
    ///
    /// # Errors
    /// When the device can't be opened, the configuration is invalid, or this is called outside of
    /// a runtime.
    pub async fn open(self, device: &str) -> io::Result<Endpoint> {
        let nic = Nic::builder().config(self.nic.clone()).open(device).await.map_err(of_open)?;
        Ok(Endpoint(Arc::new(Owner::new(&nic, &self.config, true)?)))
    }

    /// Opens the endpoint on a NIC that is open. The builder's settings of the NIC do not count.
    ///
    /// # Errors
    /// When the configuration is invalid, the NIC has no room, or this is called outside of a
    /// runtime.
    pub async fn on(self, nic: &Nic) -> io::Result<Endpoint> {
        Ok(Endpoint(Arc::new(Owner::new(nic, &self.config, false)?)))
    }
}
