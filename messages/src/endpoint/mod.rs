//! Endpoints: opened on a device, connected, and sent to.

mod handlers;
mod lane;
mod peer;
mod receive;
mod send;
mod state;

use std::fmt;
use std::sync::Arc;

use doorbell_am::{self as am, Event, MapError, Name, NameError, OpenError};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

pub use peer::Peer;
pub use receive::{Match, Message, Probed, Receiving};
pub use send::Sending;
use state::{Limits, Shared};

/// An endpoint of tagged messages: receives, and connections to others. Clones are handles to the
/// same endpoint, which ends when the last is dropped.
#[derive(Clone)]
pub struct Endpoint(Arc<Open>);

struct Open {
    endpoint: am::Endpoint,
    shared: Arc<Shared>,
    watch: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.watch.abort();
        self.shared.close();
    }
}

/// The configuration of an endpoint, from its limits to its device.
#[derive(Debug)]
#[must_use = "an endpoint is opened by `open`"]
pub struct EndpointBuilder {
    endpoint: am::EndpointBuilder,
    limits: Limits,
}

impl Endpoint {
    /// Opens an endpoint on a device: `udp:192.0.2.7:5000`, `shm:name`, `packet:eth0`, …
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(device: &str) -> Result<Self, OpenError> {
        Self::builder().open(device).await
    }

    /// Configures an endpoint.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder { endpoint: am::Endpoint::builder(), limits: Limits { window: 1 << 20 } }
    }

    /// Returns the name by which others connect.
    pub fn name(&self) -> &Name {
        self.0.endpoint.name()
    }

    /// Connects to another endpoint.
    ///
    /// # Errors
    /// When the name is none, or nobody answers by it in time.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, MapError>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let link = self.0.endpoint.connect(name).await?;
        Ok(self.0.shared.peer(&link))
    }

    /// Posts a receive of a message of any length.
    pub fn receive(&self, of: Match) -> Receiving {
        self.receive_at_most(usize::MAX, of)
    }

    /// Posts a receive of a message of at most `room` bytes. A longer one that matches is lost, and
    /// the receive fails with both lengths, as MPI has it.
    pub fn receive_at_most(&self, room: usize, of: Match) -> Receiving {
        self.0.shared.receive(of, room)
    }

    /// Looks for a message that has come and that a receive would take now, and leaves it.
    pub fn probe(&self, of: Match) -> Option<Probed> {
        self.0.shared.probe(of)
    }

    /// Returns the NIC by which the endpoint sends and receives, for its statistics.
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        self.0.endpoint.nic()
    }
}

impl EndpointBuilder {
    /// The memory that messages of one peer may take before receives take them, each with its bytes
    /// and 128 more: 1 MiB unless set. Further messages wait at their senders.
    pub fn window(mut self, bytes: usize) -> Self {
        self.limits.window = bytes;
        self
    }

    /// The endpoint of Active Messages below: tags, credits, the NIC, and all else that it can be
    /// configured to be.
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
        let shared = Shared::new(self.limits);
        let endpoint = self.endpoint.open(device, handlers::handlers(&shared)).await?;
        let watch = watch(&endpoint, shared.clone());
        Ok(Endpoint(Arc::new(Open { endpoint, shared, watch })))
    }
}

/// Ends what waits for peers whose connections have ended.
fn watch(endpoint: &am::Endpoint, shared: Arc<Shared>) -> AbortHandle {
    let mut events = endpoint.events();
    let watches = async move {
        loop {
            match events.recv().await {
                Ok(Event::Gone(peer, _)) => shared.gone(&peer),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => shared.look_for_gone(),
                Err(RecvError::Closed) => return shared.close(),
            }
        }
    };
    endpoint.bundle().runtime().spawn(watches).abort_handle()
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name().to_string()).finish_non_exhaustive()
    }
}
