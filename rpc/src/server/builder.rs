//! How servers are configured.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Bundle, Endpoint, EndpointBuilder, OpenError};
use tokio::runtime::Handle;

use super::router::Router;
use super::state::{Core, Limits};
use super::{Open, Server};
use crate::health::Health;

/// How a server is to be, from its methods to its device.
#[derive(Debug)]
#[must_use = "a server takes calls when it is opened"]
pub struct ServerBuilder {
    router: Router,
    endpoint: EndpointBuilder,
    keep_alive: Option<Duration>,
    limits: Limits,
    health: Option<Health>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            router: Router::new(),
            endpoint: Endpoint::builder(),
            keep_alive: None,
            health: None,
            limits: Limits {
                running: 65_536,
                waiting_per_client: 16_384,
                wait: None,
                longest: 64 << 20,
                memory: 256 << 20,
                sessions: 65_536,
                remember: Duration::from_secs(60),
            },
        }
    }
}

/// How long handlers may take whose callers have no deadline: Active Messages bound that.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

impl ServerBuilder {
    /// Adds methods.
    ///
    /// # Panics
    /// When the server has one of them already.
    #[track_caller]
    pub fn add_service(self, service: impl Into<Router>) -> Self {
        Self { router: self.router.merge(service.into()), ..self }
    }

    /// Has clients check and watch the health of the server, by the methods `doorbell.health/check`
    /// and `doorbell.health/watch`. When the server [shuts down](Server::shutdown), everything is
    /// [`NotServing`](crate::ServingStatus::NotServing).
    ///
    /// # Panics
    /// When the server has a health already.
    #[track_caller]
    pub fn health(self, health: &Health) -> Self {
        Self { health: Some(health.clone()), ..self.add_service(health.router()) }
    }

    /// The number by which clients name the server at its device's address: one that nobody can
    /// guess unless set.
    pub fn service(self, number: u64) -> Self {
        Self { endpoint: self.endpoint.service(number), ..self }
    }

    /// The most handlers that run at a time, 65,536 unless set: calls beyond are refused at once
    /// with [`ResourceExhausted`](crate::Code::ResourceExhausted).
    pub fn most_running(mut self, handlers: usize) -> Self {
        self.limits.running = handlers;
        self
    }

    /// The most handlers of one client's calls that wait for something, 16,384 unless set: further
    /// calls of the client are refused at once with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted), so that one client can't have all of
    /// the handlers that [may run](Self::most_running).
    pub fn most_waiting_per_client(mut self, handlers: usize) -> Self {
        self.limits.waiting_per_client = handlers;
        self
    }

    /// Has calls that would wait for longer than this before their handlers begin refused with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted), at once where that can be foreseen.
    /// Unless set, calls wait for as long as their deadlines allow.
    ///
    /// Calls wait when handlers need more processor time than there is. Without a bound, all calls
    /// wait longer and longer then, until clients have no permits left. With one, the server goes
    /// on to answer as many as it can, in about this time, and refuses the others. A few times what
    /// a handler takes, and no less than the pauses of the machine, is a good bound where latency
    /// matters. It is not for clients that keep more calls in flight than can begin within it: they
    /// are refused, too.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use doorbell::rpc::{Router, Server};
    /// # async fn open(router: Router) -> anyhow::Result<Server> {
    /// let server = Server::builder().add_service(router).shed_after(Duration::from_millis(1));
    /// Ok(server.open("udp:0.0.0.0:5000").await?)
    /// # }
    /// ```
    pub fn shed_after(mut self, wait: Duration) -> Self {
        self.limits.wait = Some(wait);
        self
    }

    /// The longest body that the server takes, 64 MiB unless set.
    pub fn longest_body(mut self, bytes: usize) -> Self {
        self.limits.longest = bytes;
        self
    }

    /// The most memory for what is long, 256 MiB unless set, for all clients together: bodies too
    /// long for messages that are being received or that handlers hold, and messages of streams
    /// beyond 64 KiB that handlers have not read. One client has at most half of it, or one
    /// [longest body](Self::longest_body) if that is more. Further bodies and messages wait.
    pub fn body_memory(mut self, bytes: usize) -> Self {
        self.limits.memory = bytes;
        self
    }

    /// The most clients that the server knows at a time, 65,536 unless set, and for how long it
    /// remembers the latest calls of a client that has gone, a minute unless set: within that time
    /// a client that comes again may send calls once more whose answers it has lost, and none runs
    /// twice.
    pub fn sessions(mut self, most: usize, remember: Duration) -> Self {
        self.limits.sessions = most;
        self.limits.remember = remember;
        self
    }

    /// How long a client may be silent before the connection to it ends: then the handlers of its
    /// calls are dropped, and its streams end. Its NIC is asked for a sign of life when nothing has
    /// come for half of that time. The client counts as dead, too, if its process is stopped for as
    /// long, or keeps its NIC waiting. From 10 ms.
    ///
    /// Unless set, a client that does not acknowledge what it is sent is dead after a second, and
    /// one that is sent nothing after half a minute.
    ///
    /// Over `shm` no time counts: the end of a process is told at once, and a process that is
    /// stopped is waited for. On a [bundle](Self::open_on) the setting of its NIC counts, and this
    /// does nothing.
    pub fn keep_alive(self, time: Duration) -> Self {
        Self { keep_alive: Some(time), ..self }
    }

    /// The endpoint of Active Messages below: credits, tags, the NIC, and all else that it can be
    /// configured to be.
    pub fn endpoint(self, configure: impl FnOnce(EndpointBuilder) -> EndpointBuilder) -> Self {
        Self { endpoint: configure(self.endpoint), ..self }
    }

    /// Opens the server on a device: `udp:192.0.2.7:5000`, `shm:kv`, `packet:eth0`, … It takes
    /// calls from now on.
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(self, device: &str) -> Result<Server, OpenError> {
        let no_runtime = |_| OpenError::NoRuntime { what: "a server of RPC" };
        let runtime = Handle::try_current().map_err(no_runtime)?;
        let core = Core::new(self.router, self.limits, runtime);
        let endpoint = match self.keep_alive {
            None => self.endpoint,
            Some(time) => self.endpoint.keep_alive(time),
        };
        let endpoint = settled(endpoint).open(device, core.handlers()).await?;
        Ok(Server(Arc::new(Open::new(endpoint, core, self.health).await?)))
    }

    /// Opens the server on a bundle, whose NIC it shares with other endpoints.
    ///
    /// # Errors
    /// When the bundle's NIC has no room for it.
    pub async fn open_on(self, bundle: &Bundle) -> Result<Server, OpenError> {
        let core = Core::new(self.router, self.limits, bundle.runtime().clone());
        let endpoint = settled(self.endpoint).open_on(bundle, core.handlers()).await?;
        Ok(Server(Arc::new(Open::new(endpoint, core, self.health).await?)))
    }
}

/// The endpoint as every server has it: asynchronous handlers are bounded by the server, and its
/// time is its callers'.
fn settled(endpoint: EndpointBuilder) -> EndpointBuilder {
    endpoint.tasks(1 << 20).patience(PATIENCE)
}
