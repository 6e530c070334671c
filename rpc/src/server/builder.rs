//! Configuring and opening a server.

use std::fmt;
use std::time::Duration;

use doorbell_am::{Bundle, Endpoint, EndpointBuilder, EndpointConfig, OpenError};
use doorbell_verbs::Nic;
use tokio::runtime::Handle;

use super::open::Server;
use super::state::{Core, Limits};
use crate::health::Health;
use crate::intercept::{Intercepted, Interceptor, Interceptors};
use crate::message::Request;
use crate::router::Router;

/// Configures a server, from its methods to its device, and opens it.
#[must_use = "a server takes calls when it is opened"]
pub struct ServerBuilder {
    router: Router,
    endpoint: EndpointBuilder,
    keep_alive: Option<Duration>,
    limits: Limits,
    health: Option<Health>,
    interceptors: Interceptors,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            router: Router::new(),
            // The server bounds the memory of its handlers itself.
            endpoint: Endpoint::builder()
                .tasks(EndpointConfig::MOST_TASKS)
                .task_memory(usize::MAX / 2),
            keep_alive: None,
            health: None,
            interceptors: Interceptors::default(),
            limits: Limits {
                running: 65_536,
                waiting_per_client: 16_384,
                wait: None,
                longest: 64 << 20,
                memory: 256 << 20,
                patience: Duration::from_secs(10),
                sessions: 65_536,
                remember: Duration::from_secs(60),
            },
        }
    }
}

/// How long handlers may take whose callers have no deadline. Active Messages need a bound.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

impl Server {
    /// A builder of a server, without methods and with all settings at their defaults.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }
}

impl ServerBuilder {
    /// Adds the methods of a service.
    ///
    /// # Panics
    /// When the server has a method of the same path already.
    #[track_caller]
    pub fn add_service(self, service: impl Into<Router>) -> Self {
        Self { router: self.router.merge(service.into()), ..self }
    }

    /// Lets clients check and watch the health of the server, by the methods
    /// `doorbell.health/check` and `doorbell.health/watch`. A [shutdown](Server::close) of the
    /// server sets everything to [`NotServing`](crate::ServingStatus::NotServing).
    ///
    /// # Panics
    /// When the server has a health already.
    #[track_caller]
    pub fn health(self, health: &Health) -> Self {
        Self { health: Some(health.clone()), ..self.add_service(health.router()) }
    }

    /// Has a function see each call of the server, whatever its method, before its body is received,
    /// if that is long, and decoded. The function may refuse the call with a status, or attach
    /// extensions to the request: see [`Router::intercept`]. It sees a call before the interceptors
    /// of single services do, and sees calls of [`health`](Self::health), too.
    ///
    /// ```
    /// use doorbell_rpc::{Server, Status};
    ///
    /// let builder = Server::builder().intercept(|request| {
    ///     // Over `shm`, the kernel tells whose process calls.
    ///     match request.caller().and_then(|caller| caller.user()) {
    ///         Some(1000) => Ok(request),
    ///         _ => Err(Status::permission_denied("this service is for user 1000")),
    ///     }
    /// });
    /// ```
    pub fn intercept(
        mut self,
        sees: impl Fn(Request<()>) -> Intercepted + Send + Sync + 'static,
    ) -> Self {
        self.interceptors.append(&Interceptor::at_once(sees).into());
        self
    }

    /// Has an async function see each call of the server, as [`intercept`](Self::intercept) does:
    /// see [`Router::intercept_async`].
    pub fn intercept_async<F>(
        mut self,
        sees: impl Fn(Request<()>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Intercepted> + Send + 'static,
    {
        self.interceptors.append(&Interceptor::waits(sees).into());
        self
    }

    /// The methods of the server, whose calls the server's interceptors see first.
    fn routes(&self) -> Router {
        Router::new().intercepted(&self.interceptors).merge(self.router.clone())
    }

    /// Sets the number by which clients name the server at its device's address. Unless set, the
    /// number is random, so that nobody can guess it.
    pub fn service(self, number: u64) -> Self {
        Self { endpoint: self.endpoint.service(number), ..self }
    }

    /// Sets the most handlers that run at a time, 65,536 unless set. Further calls are refused at
    /// once with [`ResourceExhausted`](crate::Code::ResourceExhausted).
    pub fn most_running(mut self, handlers: usize) -> Self {
        self.limits.running = handlers;
        self
    }

    /// Sets the most handlers of one client's calls that may wait for something, 16,384 unless set.
    /// Further calls of that client are refused at once with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted), so that one client can't use up all
    /// handlers that [may run](Self::most_running).
    pub fn most_waiting_per_client(mut self, handlers: usize) -> Self {
        self.limits.waiting_per_client = handlers;
        self
    }

    /// Refuses calls that would wait for longer than `wait` before their handlers begin, with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted), and at once where that can be
    /// foreseen. Unless set, calls wait for as long as their deadlines allow.
    ///
    /// Calls wait when handlers need more processor time than there is. Without a bound, all calls
    /// then wait longer and longer, until clients have no permits left. With a bound, the server
    /// goes on answering as many calls as it can, in about this time, and refuses the others. A
    /// good bound where latency matters is a few times what a handler takes, and no less than the
    /// pauses of the machine. Clients that keep more calls in flight than can begin within the
    /// bound are refused, too, so such clients need a longer one.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use doorbell_rpc::{Router, Server};
    /// # async fn open(router: Router) -> anyhow::Result<Server> {
    /// let server = Server::builder().add_service(router).shed_after(Duration::from_millis(1));
    /// Ok(server.open("udp:0.0.0.0:5000").await?)
    /// # }
    /// ```
    pub fn shed_after(mut self, wait: Duration) -> Self {
        self.limits.wait = Some(wait);
        self
    }

    /// Sets the longest request body that the server accepts, 64 MiB unless set.
    pub fn longest_body(mut self, bytes: usize) -> Self {
        self.limits.longest = bytes;
        self
    }

    /// Sets the most memory for long data of all clients together, 256 MiB unless set. Long data
    /// are bodies too long for a message, while they are received or handlers hold them, and
    /// messages of streams beyond 64 KiB that handlers have not read. One client has at most half
    /// of this memory, or one [longest body](Self::longest_body) if that is more. Further bodies
    /// and messages [wait](Self::patience_for_bodies).
    pub fn body_memory(mut self, bytes: usize) -> Self {
        self.limits.memory = bytes;
        self
    }

    /// Sets how long a body, or a message of a stream that a handler waits for, may wait for
    /// [memory](Self::body_memory) while none comes back, because handlers hold all of it: ten
    /// seconds unless set. Then the call is refused with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted) before its handler begins, or the
    /// stream ends with that error, within twice that time. While memory comes back, bodies wait
    /// their turn for as long as it takes.
    pub fn patience_for_bodies(mut self, patience: Duration) -> Self {
        self.limits.patience = patience;
        self
    }

    /// Sets the most clients that the server knows at a time, 65,536 unless set, and for how long
    /// it remembers the latest calls of a client that has gone, a minute unless set. Within that
    /// time a client that reconnects may repeat calls whose answers it has lost, and none of them
    /// runs twice.
    pub fn sessions(mut self, most: usize, remember: Duration) -> Self {
        self.limits.sessions = most;
        self.limits.remember = remember;
        self
    }

    /// Sets for how long a client may be silent before the server takes it for dead: the handlers
    /// of its calls are dropped, and its streams end. The client's NIC is probed when nothing has
    /// come for half of that time. A client whose process is stopped for this long, or does not let
    /// its NIC make progress, counts as dead, too. The shortest time is 10 ms.
    ///
    /// Unless set, a client that does not acknowledge what it is sent counts as dead after five
    /// seconds, and a client that is sent nothing after half a minute.
    ///
    /// Over `shm` the setting has no effect: the end of a process is noticed at once, and a process
    /// that is stopped is waited for. On a [bundle](Self::on_bundle) the setting of the bundle's NIC
    /// counts, and this setting has no effect.
    pub fn keep_alive(self, time: Duration) -> Self {
        Self { keep_alive: Some(time), ..self }
    }

    /// Configures the endpoint of Active Messages below the server: credits, tags, the NIC, and
    /// everything else that an [`EndpointBuilder`] has.
    pub fn endpoint(self, configure: impl FnOnce(EndpointBuilder) -> EndpointBuilder) -> Self {
        Self { endpoint: configure(self.endpoint), ..self }
    }

    /// Opens the server on a device, such as `udp:192.0.2.7:5000`, `shm:kv` or `packet:eth0`. From
    /// then on it takes calls.
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a Tokio runtime.
    pub async fn open(self, device: &str) -> Result<Server, OpenError> {
        let runtime = this_runtime()?;
        let core = Core::new(self.routes(), self.limits, runtime);
        let endpoint = match self.keep_alive {
            None => self.endpoint,
            Some(time) => self.endpoint.keep_alive(time),
        };
        let endpoint = settled(endpoint).open(device, core.handlers()).await?;
        Server::over(endpoint, core, self.health).await
    }

    /// Opens the server on a NIC that is open, with a bundle of its own.
    ///
    /// # Errors
    /// When the NIC has no resources left for the server, or this is called outside of a Tokio
    /// runtime.
    pub async fn on(self, nic: &Nic) -> Result<Server, OpenError> {
        this_runtime()?;
        let bundle = Bundle::new(nic, self.endpoint.shared_parts().1)?;
        self.on_bundle(&bundle).await
    }

    /// Opens the server on a bundle, whose NIC it shares with other endpoints.
    ///
    /// # Errors
    /// When the bundle's NIC has no resources left for the server.
    pub async fn on_bundle(self, bundle: &Bundle) -> Result<Server, OpenError> {
        let core = Core::new(self.routes(), self.limits, bundle.runtime().clone());
        let endpoint = settled(self.endpoint).on_bundle(bundle, core.handlers()).await?;
        Server::over(endpoint, core, self.health).await
    }
}

/// Returns the runtime that is to serve a server: the one in which it is opened.
fn this_runtime() -> Result<Handle, OpenError> {
    Handle::try_current().map_err(|_| OpenError::NoRuntime { what: "a server of RPC" })
}

/// The most clients for which a server has a receive each, beside those that busy clients share.
const MOST_CLIENTS: usize = 65_536;

/// Sets what every server's endpoint has: no time limit on replies, which callers bound by
/// deadlines, and a receive for each client.
fn settled(endpoint: EndpointBuilder) -> EndpointBuilder {
    endpoint.patience(PATIENCE).peers(MOST_CLIENTS)
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, endpoint, keep_alive, limits, health, interceptors: _ } = self;
        let mut shown = f.debug_struct("ServerBuilder");
        shown.field("router", router).field("endpoint", endpoint).field("keep_alive", keep_alive);
        shown.field("limits", limits).field("health", health).finish_non_exhaustive()
    }
}
