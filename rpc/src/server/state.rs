//! The state of a server, which its message handlers and its tasks share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use doorbell_am as am;
use doorbell_verbs::floor::locked;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::queue::Queue;
use super::sessions::Sessions;
use crate::bulk::{BulkConnections, Share, Transfers};
use crate::random;
use crate::router::Router;
use crate::status::Status;
use crate::stream::Streams;

/// The methods of a server, its sessions, streams and transfers, and how many handlers run.
pub struct Core {
    pub router: Router,
    pub streams: Arc<Streams>,
    pub transfers: Arc<Transfers>,
    pub bulk: BulkConnections,
    pub limits: Limits,
    sessions: Mutex<Sessions>,
    /// A random number by which clients tell this server from an earlier one at the same address.
    /// The server listens for bulk connections at the service with the same number.
    pub number: u64,
    pub running: Counts,
    /// The calls that wait for their handlers to begin; `None` if the server does not bound that
    /// wait.
    pub queue: Option<Arc<Queue>>,
    /// Whether the server is shutting down, and refuses calls.
    pub closing: AtomicBool,
    /// Whether the time limit of the shutdown is over, and no handler may run any more.
    pub stopped: AtomicBool,
    /// Notified when the last call is answered while the server shuts down.
    pub idle: Notify,
    pub runtime: Handle,
}

/// The number of handlers that run and the number of calls that are not answered yet, in one word,
/// so that both change together when a call begins. A server that shuts down waits for the latter.
#[derive(Debug, Default)]
pub struct Counts(AtomicU64);

impl Counts {
    /// The unit in which running handlers are counted, in the lower half of the word.
    const HANDLER: u64 = 1;
    /// The unit in which unanswered calls are counted, in the upper half of the word.
    const CALL: u64 = 1 << 32;

    /// The number of handlers that run.
    pub fn handlers(&self) -> usize {
        (self.0.load(Ordering::SeqCst) % Self::CALL) as usize
    }

    /// The number of calls that are not answered.
    pub fn unanswered(&self) -> usize {
        (self.0.load(Ordering::SeqCst) / Self::CALL) as usize
    }

    /// Counts a call and its handler in. Returns how many handlers ran before.
    pub fn begins(&self) -> usize {
        (self.0.fetch_add(Self::CALL + Self::HANDLER, Ordering::SeqCst) % Self::CALL) as usize
    }

    /// Counts a handler out, shortly before its call is answered.
    pub fn gives_back(&self) {
        self.0.fetch_sub(Self::HANDLER, Ordering::SeqCst);
    }

    /// Counts a call out that was answered, and its handler unless that was [counted
    /// out](Self::gives_back) before. Returns whether no other call is unanswered.
    pub fn ends(&self, is_back: bool) -> bool {
        let ends = if is_back { Self::CALL } else { Self::CALL + Self::HANDLER };
        self.0.fetch_sub(ends, Ordering::SeqCst) < 2 * Self::CALL
    }
}

/// Clients whose connections have ended, each with the status that its streams end with.
pub type Gone = HashMap<am::Peer, Status>;

/// The status with which the streams of a client end when its connection has ended.
pub fn client_gone(why: &str) -> Status {
    Status::unavailable(format!("the connection to the client has ended: {why}"))
}

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most handlers that run at a time. Further calls are refused.
    pub running: usize,
    /// The most handlers of one client's calls that may wait for something. Further calls of that
    /// client are refused.
    pub waiting_per_client: usize,
    /// How long a call may wait for its handler to begin; `None` if that is not bounded.
    pub wait: Option<Duration>,
    /// The longest request body that is accepted, in bytes.
    pub longest: usize,
    /// The most memory for bodies that are too long for messages, in bytes.
    pub memory: usize,
    /// How long a body waits for memory while none comes back.
    pub patience: Duration,
    /// The most sessions, and for how long each is remembered after its connection has ended.
    pub sessions: usize,
    pub remember: Duration,
}

impl Core {
    pub fn new(router: Router, limits: Limits, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            router,
            streams: Arc::default(),
            transfers: Transfers::new(limits.longest, limits.memory, limits.patience),
            bulk: BulkConnections::default(),
            limits,
            sessions: Mutex::new(Sessions::new(
                limits.sessions,
                limits.remember,
                limits.waiting_per_client,
            )),
            number: random(),
            running: Counts::default(),
            queue: limits.wait.map(Queue::new).map(Arc::new),
            closing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            idle: Notify::new(),
            runtime,
        })
    }

    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        locked(&self.sessions)
    }

    /// Stops everything that runs for clients whose connections have ended. One pass through the
    /// tables serves all of these clients.
    #[expect(clippy::mutable_key_type, reason = "a peer is hashed by which connection it is")]
    pub fn gone(&self, clients: &Gone) {
        let is_gone = |peer: &am::Peer| clients.contains_key(peer);
        self.sessions().gone(is_gone, Instant::now());
        self.streams.end_all_of(|peer| clients.get(peer));
        self.transfers.end_all_of(is_gone);
        self.sweep_bulk();
    }

    /// The share of the memory for long bodies that a session has. For a session that was forgotten
    /// meanwhile, a new share.
    pub fn share_of(&self, session: u64) -> Share {
        // A session that is forgotten in the middle of a call has no other call that takes memory,
        // so a new share lets its client have no more than its part.
        self.sessions().share_of(session).unwrap_or_else(|| self.transfers.share())
    }

    /// Stops everything that runs for all clients, because the server is over.
    pub fn end(&self) {
        self.sessions().close();
        let over =
            "the server has ended: it was dropped, or the runtime in which it was opened has ended";
        self.streams.end_all(&Status::unavailable(over));
        self.transfers.end_all();
        self.sweep_bulk();
    }

    /// Drops the bulk connections of clients whose connections have ended.
    pub fn sweep_bulk(&self) {
        self.bulk.sweep(|session| self.sessions().is_connected(session));
    }

    /// Finds the clients whose connections have ended, and stops everything that runs for them.
    /// Called when events were missed that would have named these clients.
    pub fn look_for_gone(&self) {
        let gone = self.sessions().peers_gone().into_iter();
        self.gone(&gone.map(|peer| (peer, client_gone("it was noticed late"))).collect());
    }
}
