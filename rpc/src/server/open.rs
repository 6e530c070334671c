//! An open server: the handle that a program holds, and the tasks that look after its clients.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Endpoint, Event, Name, OpenError, Peer};
use doorbell_verbs::{CloseError, Nic, ServiceId};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::crowd::Crowd;
use super::state::{Core, Gone, client_gone};
use crate::health::Health;
use crate::usage::Usage;

/// A server that takes calls. Clones are handles to the same server.
///
/// The runtime in which a server was opened, or in which its bundle was made, runs the server. When
/// that runtime ends, the server ends with it, and its callers get an error.
///
/// When the last handle is dropped, the server ends at once: running handlers are dropped, and
/// their callers get an error. Answers that were sent shortly before may be lost.
/// [`close`](Self::close) ends a server gracefully.
///
/// Dropping the last handle also closes a device that the server has
/// [opened](crate::ServerBuilder::open), so that another server can be opened under the same name
/// right after, in this process or another. A shutdown leaves the device open until then. For a
/// server [on a bundle](crate::ServerBuilder::on_bundle), whose NIC stays open, the server's
/// [number](crate::ServerBuilder::service) becomes free instead, also by a shutdown. When a handler
/// of the server drops the last handle, all of this may happen a moment later, when the runtime has
/// dropped the server's tasks.
///
/// # Many clients
///
/// Clients may take seven eighths of the queue pairs of the server's NIC, which are 57,344 places
/// unless configured. On `shm` a device has at most 4096 peers, and each takes a file descriptor of
/// the server. The places are shared among hosts; a host is an address, or on `shm` a process.
///
/// * While less than half of the places are taken, every client gets one.
/// * Beyond that, a host with more than a quarter of all places gets no more: its new clients take
///   the places of its own clients that have been idle longest.
/// * When all places are taken, the clients that have been idle longest give theirs up, those of the
///   host with the most places.
///
/// A client is idle when it has no call under way and has begun none for five to ten seconds. A
/// client that has given up its place connects again when it makes a call, and goes on with its
/// session. If no client is idle, a new one is turned away, and tries again with pauses.
#[derive(Clone)]
pub struct Server(Arc<Open>);

struct Open {
    endpoint: Endpoint,
    core: Arc<Core>,
    health: Option<Health>,
    /// The tasks that accept bulk connections, and look after clients that have gone.
    tasks: [AbortHandle; 3],
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.core.end();
    }
}

impl Server {
    /// The name by which clients connect to the server.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.endpoint.name()
    }

    /// The number of handlers that run now, counting those that wait to begin.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.core.running.handlers()
    }

    /// The resources that the server holds for calls in flight.
    ///
    /// ```
    /// use doorbell_rpc::{Router, Server, Usage};
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

    /// The number of clients that the server knows: those that are connected, and those that it
    /// still remembers.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.0.core.sessions().len()
    }

    /// The NIC by which the server receives and sends. Useful for its statistics.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        self.0.endpoint.nic()
    }

    /// Ends the server gracefully, and loses nothing. All clients are told, so that their channels
    /// send no more calls here. Calls that come nevertheless are refused with
    /// [`Unavailable`](crate::Code::Unavailable), and their callers know that they [have not
    /// run](crate::Status::has_not_run). Running handlers are waited for, and their answers sent.
    /// When this returns without an error, each client has all its answers, with the streams and
    /// long bodies that belong to them, or has gone, and all connections have ended. So the process
    /// may end as well. A handler that never ends holds up the shutdown:
    /// [`close_within`](Self::close_within) has a time limit.
    ///
    /// First of all, the server's [health](crate::ServerBuilder::health) is set to
    /// [`NotServing`](crate::ServingStatus::NotServing), and clients that watch it are told.
    ///
    /// # Errors
    /// When clients have not taken their last answers, ten seconds after these were sent, or when a
    /// client has been silent for as long as the NIC's [`KeepAlive`](doorbell_verbs::KeepAlive)
    /// allows. The error names the clients. The server has ended all the same.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.end(None).await
    }

    /// Ends the server gracefully, as [`close`](Self::close) does, but finishes only the
    /// calls that are done within a time limit. When the limit is over, the futures of handlers
    /// that still run are dropped, and their callers get [`Unavailable`](crate::Code::Unavailable);
    /// such calls have run in part.
    ///
    /// A handler that blocks its thread can't be stopped. The shutdown waits for it for ten seconds
    /// more, and its caller then learns that the connection has ended.
    ///
    /// # Errors
    /// When calls had to be [stopped](CloseError::stopped), and as [`close`](Self::close). The
    /// server has ended all the same.
    pub async fn close_within(&self, limit: Duration) -> Result<(), CloseError> {
        self.end(Some(limit)).await
    }

    async fn end(&self, limit: Option<Duration>) -> Result<(), CloseError> {
        self.0.health.iter().for_each(Health::shut_down);
        self.0.endpoint.accept_no_more();
        let closed = self.0.core.close(limit).await;
        // A client whose connection stood would wait in vain when the process ends, and another
        // one has its address by then. Clients that have not taken all were waited for already.
        let _ = self.0.endpoint.close_until(Instant::now() + ENDS).await;
        closed
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

/// How long a server that has shut down waits for its clients' NICs while it ends the connections.
const ENDS: Duration = Duration::from_secs(1);

/// The time between two sweeps of the sessions, unless sessions are remembered for a shorter time.
const SWEEP: Duration = Duration::from_secs(5);

impl Server {
    /// Makes a server of an endpoint that is open, and starts its tasks.
    pub(super) async fn over(
        endpoint: Endpoint,
        core: Arc<Core>,
        health: Option<Health>,
    ) -> Result<Self, OpenError> {
        Ok(Self(Arc::new(Open::new(endpoint, core, health).await?)))
    }
}

impl Open {
    async fn new(
        endpoint: Endpoint,
        core: Arc<Core>,
        health: Option<Health>,
    ) -> Result<Self, OpenError> {
        let nic = endpoint.nic().clone();
        let listener = nic.listen(ServiceId(core.number)).await?;
        let accepts_bulk = {
            let core = core.clone();
            async move {
                let is_session = |session| core.sessions().contains(session);
                core.bulk.serve(nic, listener, is_session).await;
            }
        };
        let runtime = &core.runtime;
        let places = endpoint.nic().most_queue_pairs();
        let crowd = Crowd::new(most_clients(places, &core));
        let watches = runtime.spawn(watches(&endpoint, core.clone(), crowd));
        let tasks = [runtime.spawn(accepts_bulk), runtime.spawn(sweeps(core.clone())), watches];
        Ok(Self { endpoint, core, health, tasks: tasks.map(|task| task.abort_handle()) })
    }
}

/// Forgets sessions that are over, again and again.
async fn sweeps(core: Arc<Core>) {
    let pause = core.limits.remember.clamp(Duration::from_millis(10), SWEEP);
    loop {
        tokio::time::sleep(pause).await;
        core.sessions().sweep(Instant::now());
        core.sweep_bulk();
    }
}

/// Returns how many clients may be connected to a server whose NIC has so many queue pairs. Some
/// are left for those that come meanwhile, for connections whose numbers rest, and for long bodies.
fn most_clients(queue_pairs: usize, core: &Core) -> usize {
    let left = (queue_pairs / 8).max(queue_pairs.min(16));
    core.limits.sessions.min(queue_pairs - left).max(1)
}

/// Watches the endpoint's events, and stops everything that runs for clients whose connections end.
/// When the future is dropped, stops everything that runs for all clients.
fn watches(
    endpoint: &Endpoint,
    core: Arc<Core>,
    mut crowd: Crowd,
) -> impl Future<Output = ()> + use<> {
    let mut events = endpoint.events();
    let peers = endpoint.peers_later();
    let ends = EndsWithRuntime(core);
    async move {
        let core = &ends.0;
        loop {
            let missed = match events.recv().await {
                Ok(event) => {
                    let came = came_with(event, &mut events);
                    came.gone.keys().for_each(|peer| crowd.gone(peer));
                    if !came.gone.is_empty() {
                        core.gone(&came.gone);
                    }
                    for peer in came.linked {
                        let host = peer.host();
                        crowd.comes(peer, host, &mut core.sessions());
                    }
                    came.missed
                }
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => return,
            };
            // Missed events are made up for by looking through all sessions and connections.
            if missed {
                core.look_for_gone();
                let there = peers().into_iter().map(|peer| (peer.clone(), peer.host()));
                crowd.are(there.collect(), &core.sessions());
            }
        }
    }
}

/// The clients that an event of the endpoint concerns.
struct Came {
    /// The clients whose connections have ended.
    gone: Gone,
    /// The clients that have connected, and have not gone.
    linked: Vec<Peer>,
    /// Whether some events were missed, which is told only once.
    missed: bool,
}

/// Returns what has come with `event`, and with the events that have come right behind it.
fn came_with(event: Event, events: &mut Receiver<Event>) -> Came {
    let mut came = Came { gone: Gone::new(), linked: Vec::new(), missed: false };
    let mut next = Some(event);
    loop {
        match next {
            Some(Event::Gone(peer, ending)) => {
                came.linked.retain(|linked| *linked != peer);
                came.gone.insert(peer, client_gone(&ending.to_string()));
            }
            Some(Event::Linked(peer)) => came.linked.push(peer),
            _ => {}
        }
        next = match events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Lagged(_)) => {
                came.missed = true;
                None
            }
            Err(TryRecvError::Empty | TryRecvError::Closed) => return came,
        };
    }
}

/// Stops everything that runs for all clients when dropped, which happens when the server is
/// dropped or its runtime ends. Handlers may have passed their streams to tasks elsewhere, which
/// would otherwise wait for ever.
struct EndsWithRuntime(Arc<Core>);

impl Drop for EndsWithRuntime {
    fn drop(&mut self) {
        self.0.end();
    }
}
