//! The state of a server: its methods, sessions, streams and bodies, and how many handlers run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorbell_am as am;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::queue::Queue;
use super::router::Router;
use super::sessions::Sessions;
use crate::bulk::{Lines, Share, Transfers};
use crate::random;
use crate::status::Status;
use crate::stream::Streams;

/// A server's methods and its state, which its Active Messages work on.
pub struct Core {
    pub router: Router,
    pub streams: Arc<Streams>,
    pub transfers: Arc<Transfers>,
    pub lines: Lines,
    pub limits: Limits,
    sessions: Mutex<Sessions>,
    /// The server's number, by which clients know whether it still knows what they called.
    /// Lines for long bodies are taken by it, too.
    pub number: u64,
    pub running: Counts,
    /// The calls that wait for their handlers to begin, if the server bounds how long.
    pub queue: Option<Queue>,
    pub closing: AtomicBool,
    /// Told when the last handler ends while the server closes.
    pub idle: Notify,
    pub runtime: Handle,
}

/// How long a server that shuts down waits until its clients have taken its answers in.
const SETTLES: Duration = Duration::from_secs(1);

/// How many handlers run, and how many calls were taken in and not answered yet, which a server
/// that shuts down waits for. Both change together when a call begins.
#[derive(Debug, Default)]
pub struct Counts(AtomicU64);

impl Counts {
    /// A handler that runs, in the lower half of the word.
    const HANDLER: u64 = 1;
    /// A call that is not answered, in the upper half of the word.
    const CALL: u64 = 1 << 32;

    /// How many handlers run.
    pub fn handlers(&self) -> usize {
        (self.0.load(Ordering::SeqCst) % Self::CALL) as usize
    }

    /// Whether a call is not answered.
    fn any_unanswered(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= Self::CALL
    }

    /// Counts a call in. Returns how many handlers ran before.
    pub fn begins(&self) -> usize {
        (self.0.fetch_add(Self::CALL + Self::HANDLER, Ordering::SeqCst) % Self::CALL) as usize
    }

    /// Counts a handler out, whose call is about to be answered.
    pub fn gives_back(&self) {
        self.0.fetch_sub(Self::HANDLER, Ordering::SeqCst);
    }

    /// Counts a call out that has been answered. Returns whether none is left.
    pub fn ends(&self) -> bool {
        self.0.fetch_sub(Self::CALL, Ordering::SeqCst) < 2 * Self::CALL
    }
}

/// Clients whose connections have ended, and what their streams end with.
pub type Gone = HashMap<am::Peer, Status>;

/// What the streams of a client end with whose connection has ended.
pub fn client_gone(why: &str) -> Status {
    Status::unavailable(format!("the connection to the client has ended: {why}"))
}

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most handlers that run at a time; calls beyond are refused.
    pub running: usize,
    /// The most handlers of one client's calls that wait for something; calls beyond are refused.
    pub waiting_per_client: usize,
    /// How long a call may wait for its handler to begin, if that is bounded.
    pub wait: Option<Duration>,
    /// The longest body that is taken.
    pub longest: usize,
    /// The most memory for bodies that are too long for messages.
    pub memory: usize,
    /// The most sessions, and for how long each outlives its connection.
    pub sessions: usize,
    pub remember: Duration,
}

impl Core {
    pub fn new(router: Router, limits: Limits, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            router,
            streams: Arc::default(),
            transfers: Transfers::new(limits.longest, limits.memory),
            lines: Lines::default(),
            limits,
            sessions: Mutex::new(Sessions::new(
                limits.sessions,
                limits.remember,
                limits.waiting_per_client,
            )),
            number: random(),
            running: Counts::default(),
            queue: limits.wait.map(Queue::new),
            closing: AtomicBool::new(false),
            idle: Notify::new(),
            runtime,
        })
    }

    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops what runs for clients whose connections have ended. All of them together cost one look
    /// through what there is.
    #[expect(clippy::mutable_key_type, reason = "a peer is hashed by which connection it is")]
    pub fn gone(&self, clients: &Gone) {
        let is_gone = |peer: &am::Peer| clients.contains_key(peer);
        self.sessions().gone(is_gone, Instant::now());
        self.streams.end_all_of(|peer| clients.get(peer));
        self.transfers.end_all_of(is_gone);
        self.sweep_lines();
    }

    /// What a client may have of the memory for what is long, by its session.
    pub fn share_of(&self, session: u64) -> Share {
        // A session that is forgotten in the midst of a call has no other call that takes memory.
        self.sessions().share_of(session).unwrap_or_else(|| self.transfers.share())
    }

    /// Stops what runs for all clients, because the server is over.
    pub fn end(&self) {
        self.sessions().close();
        let over =
            "the server has ended: it was dropped, or the runtime in which it was opened has ended";
        self.streams.end_all(&Status::unavailable(over));
        self.transfers.end_all();
        self.sweep_lines();
    }

    /// Drops the lines for long bodies of clients that have gone.
    pub fn sweep_lines(&self) {
        self.lines.sweep(|session| self.sessions().is_connected(session));
    }

    /// Stops what runs for all clients whose connections have ended.
    pub fn look_for_gone(&self) {
        let gone = self.sessions().peers_gone().into_iter();
        self.gone(&gone.map(|peer| (peer, client_gone("it was noticed late"))).collect());
    }

    /// Refuses further calls, waits until all handlers that run have ended, and their answers have
    /// been sent, and then for a bounded time until clients have them.
    pub async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        loop {
            let mut ended = std::pin::pin!(self.idle.notified());
            ended.as_mut().enable();
            if !self.running.any_unanswered() {
                break;
            }
            ended.await;
        }
        let peers = self.sessions().peers_connected();
        let settled = join_all(peers.iter().map(am::Peer::settled));
        // A client that is stopped, or takes nothing, is not waited for.
        let _ = tokio::time::timeout(SETTLES, settled).await;
    }
}
