//! Servers: methods and their handlers, on a device.

mod answer;
mod builder;
mod intake;
mod queue;
mod router;
mod running;
mod sessions;
mod state;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Endpoint, Event, Name, OpenError};
use doorbell_verbs::{Nic, ServiceId};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

pub use builder::ServerBuilder;
pub use router::Router;

use self::state::{Core, Gone, client_gone};
use crate::health::Health;
use crate::usage::Usage;

/// A server that takes calls.
///
/// A server is run by the runtime in which it was opened, or in which its bundle was made: when
/// that runtime ends, the server ends with it, and its callers are told.
///
/// When the last handle is dropped, the server ends at once: handlers that run are dropped, and
/// their callers told that the server has gone. [`shutdown`](Self::shutdown) ends a server
/// gracefully.
///
/// A server that has [opened](ServerBuilder::open) its device has closed it when the last handle is
/// dropped: another server can be opened under the same name in the next line, in this process or
/// another one. That holds after a shutdown, too, which leaves the device open until then. Of a
/// server [on a bundle](ServerBuilder::open_on), whose NIC is not the server's, the
/// [number](ServerBuilder::service) is free. Where a handler of the server drops the last handle,
/// that may be a moment later, when the runtime has dropped the server's tasks.
#[derive(Clone)]
pub struct Server(Arc<Open>);

struct Open {
    endpoint: Endpoint,
    core: Arc<Core>,
    health: Option<Health>,
    /// Tasks that take lines for long bodies, and forget clients which have gone.
    tasks: [AbortHandle; 3],
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.core.end();
    }
}

impl Server {
    /// A server without methods, to configure and to open.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The name by which clients connect.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.endpoint.name()
    }

    /// How many handlers run now, with those that wait to begin.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.core.running.handlers()
    }

    /// What the server holds for calls that are under way.
    ///
    /// ```
    /// use doorbell::rpc::{Router, Server, Usage};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> anyhow::Result<()> {
    /// let server = Server::builder().add_service(Router::new()).open("shm").await?;
    /// assert_eq!(server.usage(), Usage::default());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn usage(&self) -> Usage {
        let core = &self.0.core;
        Usage::of(self.running(), &core.streams, &core.transfers)
    }

    /// How many clients the server knows: those that are connected, and those that it still
    /// remembers.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.0.core.sessions().len()
    }

    /// The NIC by which the server receives and sends, for its statistics.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        self.0.endpoint.nic()
    }

    /// Ends the server gracefully: from now on calls are refused with
    /// [`Unavailable`](crate::Code::Unavailable), handlers that run are waited for, and their
    /// answers sent. When this returns, each client has all its answers, unless it is gone or has
    /// taken nothing for a second. A handler that never ends holds the end up: bound the wait with
    /// `tokio::time::timeout`, and drop the server.
    ///
    /// Before that, the server's [health](ServerBuilder::health) is set to
    /// [`NotServing`](crate::ServingStatus::NotServing), and those who watch it are told.
    pub async fn shutdown(&self) {
        self.0.health.iter().for_each(Health::shut_down);
        self.0.core.close().await;
        self.0.endpoint.unmap_all().await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name().to_string())
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}

/// How often sessions are looked through for clients that have gone, unless they are remembered for
/// a shorter time.
const SWEEP: Duration = Duration::from_secs(5);

impl Open {
    async fn new(
        endpoint: Endpoint,
        core: Arc<Core>,
        health: Option<Health>,
    ) -> Result<Self, OpenError> {
        let nic = endpoint.nic().clone();
        let listener = nic.listen(ServiceId(core.number)).await?;
        let lines = {
            let core = core.clone();
            async move {
                let is_session = |session| core.sessions().contains(session);
                core.lines.serve(nic, listener, is_session).await;
            }
        };
        let runtime = &core.runtime;
        let watches = runtime.spawn(watches(&endpoint, core.clone()));
        let tasks = [runtime.spawn(lines), runtime.spawn(sweeps(core.clone())), watches];
        Ok(Self { endpoint, core, health, tasks: tasks.map(|task| task.abort_handle()) })
    }
}

/// Forgets sessions whose time is over, now and then.
async fn sweeps(core: Arc<Core>) {
    let pause = core.limits.remember.clamp(Duration::from_millis(10), SWEEP);
    loop {
        tokio::time::sleep(pause).await;
        core.sessions().sweep(tokio::time::Instant::now());
        core.sweep_lines();
    }
}

/// Stops what runs for clients whose connections end; and for all when the task is dropped.
fn watches(endpoint: &Endpoint, core: Arc<Core>) -> impl Future<Output = ()> + use<> {
    let mut events = endpoint.events();
    let ends = EndsWithRuntime(core);
    async move {
        let core = &ends.0;
        loop {
            match events.recv().await {
                Ok(event) => core.gone(&gone_with(event, &mut events)),
                // Clients whose end was missed are found among the sessions.
                Err(RecvError::Lagged(_)) => core.look_for_gone(),
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// The clients whose connections have ended by an event and those behind it that have come already.
/// If some were missed, the next look at the events says so.
#[expect(clippy::mutable_key_type, reason = "a peer is hashed by which connection it is")]
fn gone_with(event: Event, events: &mut Receiver<Event>) -> Gone {
    let behind = std::iter::from_fn(|| events.try_recv().ok());
    let gone = std::iter::once(event).chain(behind).filter_map(|event| match event {
        Event::Gone(peer, ending) => Some((peer, client_gone(&ending.to_string()))),
        _ => None,
    });
    gone.collect()
}

/// Stops what runs for all clients when the server is dropped, or its runtime ends: handlers may
/// have given their streams to somebody who waits elsewhere.
struct EndsWithRuntime(Arc<Core>);

impl Drop for EndsWithRuntime {
    fn drop(&mut self) {
        self.0.end();
    }
}
