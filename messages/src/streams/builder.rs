//! Opening endpoints, with handlers and settings.

use std::fmt;

use doorbell_am::{self as am, Bundle, OpenError};
use doorbell_verbs::Nic;

use super::endpoint::Endpoint;
use super::error::HandlerError;
use super::handlers::handlers;
use super::id::StreamId;
use super::incoming::Incoming;
use super::limits::Limits;
use super::runner::Handlers;
use super::state::Shared;

/// The configuration of an endpoint, from its handlers to its device.
#[must_use = "an endpoint is opened by `open`"]
pub struct EndpointBuilder {
    endpoint: am::EndpointBuilder,
    handlers: Handlers,
    limits: Limits,
    is_paced: bool,
}

/// The longest payload of packets unless configured: long ones cost less for each byte.
const PAYLOAD: usize = 16 << 10;

impl Default for EndpointBuilder {
    /// Returns a builder without handlers, with packets of up to 16 KiB.
    fn default() -> Self {
        Self {
            endpoint: am::Endpoint::builder().payload(PAYLOAD),
            handlers: Handlers::default(),
            limits: Limits::default(),
            is_paced: false,
        }
    }
}

impl Endpoint {
    /// Makes a builder, by which an endpoint gets handlers and settings, and is opened.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Opens an endpoint without handlers on a device: `udp:192.0.2.7:5000`, `shm:name`,
    /// `packet:eth0`, …
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(device: &str) -> Result<Self, OpenError> {
        Self::builder().open(device).await
    }

    /// Opens an endpoint without handlers on a NIC that is open, with a bundle of its own.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on(nic: &Nic) -> Result<Self, OpenError> {
        Self::builder().on(nic).await
    }

    /// Opens an endpoint without handlers on a bundle, beside other endpoints of its NIC.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on_bundle(bundle: &Bundle) -> Result<Self, OpenError> {
        Self::builder().on_bundle(bundle).await
    }
}

impl EndpointBuilder {
    /// Sets the handler of a stream: an asynchronous function of each message.
    ///
    /// The handler begins with the first packet of a message. Handlers of the endpoint take turns
    /// on one task, so a handler that computes for long, or blocks, does so in a task of its own
    /// that it awaits.
    ///
    /// # Panics
    /// When the stream has a handler already, or another stream's name has the same number.
    #[track_caller]
    pub fn handler<F>(
        mut self,
        stream: StreamId,
        handler: impl Fn(Incoming) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        let boxed = Box::new(move |message: Incoming| Box::pin(handler(message)) as _);
        if let Some((there, _)) = self.handlers.insert(stream.number(), (stream, boxed)) {
            panic!("{stream:?} needs another name: there is a handler of {there:?} already");
        }
        self
    }

    /// Has packets wait until the program [extracts](Endpoint::extract) them.
    pub fn paced(self) -> Self {
        Self { is_paced: true, ..self }
    }

    /// The bytes of one message that may wait for its handler, each packet with 128 more: 512 KiB
    /// unless set, from 2 KiB to 1 GiB. The sender waits with the rest. A packet takes half of the
    /// window at the most.
    pub fn window(mut self, bytes: usize) -> Self {
        self.limits.window = bytes;
        self
    }

    /// The messages that may be open at a time, of each peer: 32 unless set, from 1 to 64. The
    /// peer waits with others until handlers have returned.
    pub fn messages(mut self, messages: usize) -> Self {
        self.limits.messages = messages;
        self
    }

    /// The endpoint of Active Messages below: tags, credits, the NIC, the length of packets, and
    /// all else that it can be configured to be. Messages need its order, so the policy
    /// [`PerSize`](doorbell_am::Policy::PerSize) is not for streams.
    pub fn endpoint(
        self,
        configure: impl FnOnce(am::EndpointBuilder) -> am::EndpointBuilder,
    ) -> Self {
        Self { endpoint: configure(self.endpoint), ..self }
    }

    /// Opens the endpoint on a device.
    ///
    /// # Errors
    /// As [`Endpoint::open`].
    pub async fn open(self, device: &str) -> Result<Endpoint, OpenError> {
        let shared = Shared::new(self.handlers, self.limits.within_bounds(), self.is_paced);
        let endpoint = self.endpoint.open(device, handlers(&shared)).await?;
        Ok(Endpoint::new(endpoint, shared))
    }

    /// Opens the endpoint on a NIC that is open, with a bundle of its own.
    ///
    /// # Errors
    /// As [`on_bundle`](Self::on_bundle).
    pub async fn on(self, nic: &Nic) -> Result<Endpoint, OpenError> {
        let bundle = Bundle::new(nic, self.endpoint.shared_parts().1)?;
        self.on_bundle(&bundle).await
    }

    /// Opens the endpoint on a bundle, beside other endpoints of its NIC.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint, or the configuration is not valid.
    pub async fn on_bundle(self, bundle: &Bundle) -> Result<Endpoint, OpenError> {
        let shared = Shared::new(self.handlers, self.limits.within_bounds(), self.is_paced);
        let endpoint = self.endpoint.on_bundle(bundle, handlers(&shared)).await?;
        Ok(Endpoint::new(endpoint, shared))
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams: Vec<_> = self.handlers.values().map(|(stream, _)| stream).collect();
        f.debug_struct("EndpointBuilder")
            .field("streams", &streams)
            .field("window", &self.limits.window)
            .field("messages", &self.limits.messages)
            .field("is_paced", &self.is_paced)
            .finish_non_exhaustive()
    }
}
