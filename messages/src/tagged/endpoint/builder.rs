//! Opening an endpoint.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use doorbell_am::{self as am, Bundle, Event};
use doorbell_verbs::floor::watch_over;
use doorbell_verbs::{Domain, Listener, Nic, ServiceId};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use super::handlers::handlers;
use super::shared::{OwnRail, Shared};
use super::{Endpoint, Open, OwnNics};
use crate::tagged::error::OpenError;
use crate::tagged::limits::Limits;
use crate::tagged::wire::MOST_RAILS;

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

    /// Opens an endpoint on a NIC that is open, with a bundle of its own.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on(nic: &Nic) -> Result<Self, OpenError> {
        Self::builder().on(nic).await
    }

    /// Opens an endpoint on a bundle, beside other endpoints of its NIC.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on_bundle(bundle: &Bundle) -> Result<Self, OpenError> {
        Self::builder().on_bundle(bundle).await
    }

    /// Returns a builder that configures and opens an endpoint.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        // Messages have no replies, so the receiver says by messages of its own that it has handled
        // a quarter of what the credits allow. With few credits that would be every other message.
        let endpoint = am::Endpoint::builder().first_credits(128);
        Self { endpoint, limits: Limits::default() }
    }
}

impl EndpointBuilder {
    /// The memory that messages of one peer may take before receives take them, each with its bytes
    /// and 384 more, and long messages with 384 alone: 1 MiB unless set, and at least 4096 bytes.
    /// Further messages wait at their senders.
    pub fn window(mut self, bytes: usize) -> Self {
        self.limits.window = bytes;
        self
    }

    /// The longest messages that are sent before their receives are known: 32 KiB unless set, and
    /// at least 3712 bytes. The receiver pulls longer ones from their senders. Of two endpoints
    /// that differ, the lower limit counts.
    pub fn eager(mut self, bytes: usize) -> Self {
        self.limits.eager = bytes;
        self
    }

    /// The longest message that a receive takes: 256 MiB unless set. So a peer can't make a receive
    /// without a bound of its own take more memory than that.
    pub fn longest(mut self, bytes: usize) -> Self {
        self.limits.longest = bytes;
        self
    }

    /// The bytes of a long message that are pulled by one read: 256 KiB unless set.
    pub fn block(mut self, bytes: usize) -> Self {
        self.limits.block = bytes;
        self
    }

    /// The most reads of one long message that are under way at a time: four unless set.
    pub fn blocks(mut self, blocks: usize) -> Self {
        self.limits.blocks = blocks;
        self
    }

    /// The time for which nothing of a long message may come before its receive fails: 30 seconds
    /// unless set. A connection over which the body is pulled may end, because a device was closed
    /// or the sender was stopped for a while, say; then the rest of the body is pulled over another
    /// one. If the connection by which messages come has ended, the receive fails at once: how long
    /// a peer may be silent is for the [keep-alive time](am::EndpointBuilder::keep_alive) to say.
    pub fn patience(mut self, time: Duration) -> Self {
        self.limits.patience = time;
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
    /// As [`Endpoint::open`], and when a limit has a value that can't be used.
    pub async fn open(self, device: &str) -> Result<Endpoint, OpenError> {
        self.open_all(&[device]).await
    }

    /// Opens the endpoint on several devices, at most eight. Messages to peers that were
    /// [connected to by several names](Endpoint::connect_all) go by all devices that both have, in
    /// one order, and survive the loss of all of these but one.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when there is no device, or there are more than eight.
    pub async fn open_all(self, devices: &[&str]) -> Result<Endpoint, OpenError> {
        self.limits.check()?;
        let mut bundles = Vec::new();
        for device in devices {
            bundles.push(self.endpoint.open_bundle(device).await?);
        }
        Bundle::unite(&bundles);
        let own_nics = bundles.iter().map(|bundle| bundle.nic().clone()).collect();
        self.on_bundles_of(own_nics, &bundles).await
    }

    /// Opens the endpoint on a bundle, beside other endpoints of its NIC.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint, or a limit has a value that can't be used.
    pub async fn on_bundle(self, bundle: &Bundle) -> Result<Endpoint, OpenError> {
        self.on_bundles(std::slice::from_ref(bundle)).await
    }

    /// Opens the endpoint on a NIC that is open, with a bundle of its own.
    ///
    /// # Errors
    /// As [`on_bundle`](Self::on_bundle).
    pub async fn on(self, nic: &Nic) -> Result<Endpoint, OpenError> {
        let bundle = Bundle::new(nic, self.endpoint.shared_parts().1)?;
        self.on_bundle(&bundle).await
    }

    /// Opens the endpoint on several bundles, which must be [united](Bundle::unite), as
    /// [`open_all`](Self::open_all) does on several devices.
    ///
    /// # Errors
    /// As [`open_all`](Self::open_all).
    pub async fn on_bundles(self, bundles: &[Bundle]) -> Result<Endpoint, OpenError> {
        self.on_bundles_of(Vec::new(), bundles).await
    }

    /// Opens the endpoint on bundles, of whose NICs some were opened for the endpoint.
    async fn on_bundles_of(
        self,
        own_nics: Vec<Nic>,
        bundles: &[Bundle],
    ) -> Result<Endpoint, OpenError> {
        self.limits.check()?;
        if !(1..=MOST_RAILS).contains(&bundles.len()) {
            return Err(OpenError::Config {
                field: "the number of devices",
                found: bundles.len().to_string(),
                allowed: format!("from 1 to {MOST_RAILS}"),
                why: "messages say in three bits by which device they have come",
            });
        }
        let (mut rails, mut listeners) = (Vec::new(), Vec::new());
        for bundle in bundles {
            let service = getrandom::u64().expect("Linux has random numbers once it has started");
            listeners.push(bundle.nic().listen(ServiceId(service)).await?);
            rails.push(OwnRail { bundle: bundle.clone(), service, name: OnceLock::new() });
        }
        let shared = Shared::new(self.limits, rails);
        let runner: Weak<dyn am::Runner> = Arc::downgrade(&(shared.clone() as _));
        shared.core.due.signal_by(shared.bundle().run_beside(runner));
        let mut open =
            Open { endpoints: Vec::new(), shared, tasks: Vec::new(), _own_nics: OwnNics(own_nics) };
        let devices = Arc::new(AtomicUsize::new(bundles.len()));
        let accepting = open.shared.puller.domains().to_vec().into_iter().zip(listeners);
        for (device, (domain, listener)) in accepting.enumerate() {
            let shared = &open.shared;
            let rail = &shared.rails[device];
            let endpoint = self.endpoint.clone();
            let endpoint = endpoint.on_bundle(&rail.bundle, handlers(shared, device)).await?;
            let _ = rail.name.set(endpoint.name().to_string());
            let watches = watch(&endpoint, shared.clone(), devices.clone());
            let tasks = [watches, accept(shared, domain, listener)];
            open.tasks.extend(tasks);
            open.endpoints.push(endpoint);
        }
        for bundle in bundles {
            watch_over(&open.shared, bundle.nic(), bundle.runtime());
        }
        Ok(Endpoint(Arc::new(open)))
    }
}

/// Ends an endpoint once the tasks that watch its devices have all ended: a device was closed, or the
/// runtime of its task has ended.
struct OnLast(Weak<Shared>, Arc<AtomicUsize>);

impl Drop for OnLast {
    fn drop(&mut self) {
        let Self(shared, devices) = self;
        let is_last = devices.fetch_sub(1, Ordering::Relaxed) == 1;
        if let Some(shared) = shared.upgrade().filter(|_| is_last) {
            shared.close();
        }
    }
}

/// Ends what waits for peers whose connections have ended, and the endpoint itself once the last of
/// its `devices` is closed.
fn watch(endpoint: &am::Endpoint, shared: Arc<Shared>, devices: Arc<AtomicUsize>) -> AbortHandle {
    let (mut events, runtime) = (endpoint.events(), endpoint.bundle().runtime().clone());
    // A task that is being stopped must not keep the NIC of an endpoint that is dropped.
    let shared = Arc::downgrade(&shared);
    let on_last = OnLast(shared.clone(), devices);
    let watches = async move {
        let _on_last = on_last;
        loop {
            let event = events.recv().await;
            let Some(shared) = shared.upgrade() else { return };
            match event {
                Ok(Event::Gone(peer, _)) => shared.gone(&peer),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => shared.look_for_gone(),
                Err(RecvError::Closed) => return shared.look_for_gone(),
            }
        }
    };
    runtime.spawn(watches).abort_handle()
}

/// Accepts connections for long messages.
fn accept(shared: &Shared, domain: Domain, listener: Listener) -> AbortHandle {
    let service = shared.service.clone();
    let accepts = async move { service.serve(domain, listener).await };
    shared.bundle().runtime().spawn(accepts).abort_handle()
}
