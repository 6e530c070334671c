//! Keeping a connection: the one that a channel has, and the next one when that has ended.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use doorbell_am::{Endpoint, Name, Peer};
use doorbell_verbs::Nic;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::connection::Connection;
use crate::context::deadline_after;
use crate::meters;
use crate::status::{Code, Status};

/// The pauses of a channel between its attempts to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The pause after the first attempt that fails.
    pub first: Duration,
    /// The longest pause between two attempts. Each pause is twice as long as the one before, up to
    /// this.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(10), most: Duration::from_secs(1) }
    }
}

/// Keeps a connection to a server, and makes the next one when the connection has ended.
///
/// An attempt to connect is a task of the channel, not of the call that begins it. A call whose
/// deadline passes leaves the attempt to the calls that follow.
#[derive(Debug)]
pub struct Connector(Arc<Shared>);

/// The state that a connector shares with the task that connects.
#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    name: Name,
    /// The client's number, drawn at random.
    client: u64,
    backoff: Backoff,
    /// How long a call without a deadline waits for a connection.
    patience: Duration,
    current: RwLock<Option<Arc<Connection>>>,
    attempts: Mutex<Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    /// The number of the session of the last connection, to go on with; zero before the first.
    session: u64,
    failed: u32,
    next: Option<Instant>,
    last: Option<Status>,
    under_way: Option<UnderWay>,
    /// The connection whose server has said that it shuts down. Calls may still wait for answers.
    left: Option<Peer>,
}

/// The outcome of an attempt; `None` if its task was dropped, because the runtime has ended.
type Attempted = Option<Result<Arc<Connection>, Status>>;

/// An attempt that is under way.
struct UnderWay {
    outcome: future::Shared<BoxFuture<'static, Attempted>>,
    task: AbortHandle,
}

/// The least time that an attempt is given, however short the channel's patience is.
const LEAST_TIME: Duration = Duration::from_secs(5);
/// The most time that an attempt is given, however long the channel's patience is.
const LONGEST_TIME: Duration = Duration::from_secs(60);

impl Connector {
    pub fn new(endpoint: Endpoint, name: Name, backoff: Backoff, patience: Duration) -> Self {
        Self(Arc::new(Shared {
            endpoint,
            name,
            client: crate::random(),
            backoff,
            patience,
            current: RwLock::new(None),
            attempts: Mutex::default(),
        }))
    }

    pub fn name(&self) -> &Name {
        &self.0.name
    }

    pub fn nic(&self) -> &Nic {
        self.0.endpoint.nic()
    }

    /// The connection, if there is one that is up.
    pub fn current(&self) -> Option<Arc<Connection>> {
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|connection| connection.is_up()).cloned()
    }

    /// Returns the connection of the channel. If there is none, waits until one is made, until the
    /// deadline or, without one, for as long as the channel waits for connections.
    ///
    /// # Errors
    /// The reason why there is no connection in time.
    pub async fn connection(&self, deadline: Option<Instant>) -> Result<Arc<Connection>, Status> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let until = deadline_after(self.0.patience);
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        loop {
            match tokio::time::timeout_at(until, self.attempt()).await {
                Ok(Some(Ok(connection))) => return Ok(connection),
                Ok(Some(Err(refused))) if refused.code() != Code::Unavailable => {
                    return Err(refused);
                }
                Ok(Some(Err(_))) => {}
                Ok(None) => return Err(runtime_ended(&self.0.name)),
                Err(_) => return Err(self.no_connection(deadline == Some(until))),
            }
        }
    }

    /// Waits for the attempt that is under way, and begins one if none is.
    async fn attempt(&self) -> Attempted {
        let outcome = {
            let mut attempts = self.0.attempts();
            if let Some(connection) = self.current() {
                return Some(Ok(connection));
            }
            attempts.under_way.get_or_insert_with(|| self.0.begin()).outcome.clone()
        };
        outcome.await
    }

    /// What is done when the server of a connection says that it shuts down: the connection takes
    /// no more calls, and the next one is attempted.
    pub fn leaves(&self) -> impl Fn(&Peer) + Send + Sync + 'static {
        let shared = Arc::downgrade(&self.0);
        move |peer| {
            let Some(shared) = shared.upgrade() else { return };
            // An attempt that is about to end either finds the peer here, or has ended.
            let mut attempts = shared.attempts();
            attempts.left = Some(peer.clone());
            let mut current = shared.current.write().unwrap_or_else(PoisonError::into_inner);
            let left = current.take_if(|connection| connection.is_to(peer));
            drop(current);
            if let Some(left) = left {
                left.leave();
                attempts.under_way.get_or_insert_with(|| shared.begin());
            }
        }
    }

    /// The status of a call that found no connection in time.
    fn no_connection(&self, by_deadline: bool) -> Status {
        let last = self.0.attempts().last.clone();
        let why = last.as_ref().map_or("no attempt has ended yet", Status::message);
        let text = format!("there is no connection to {} in time: {why}", self.0.name);
        if by_deadline { Status::deadline_exceeded(text) } else { Status::unavailable(text) }
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.0.attempts().under_way.iter().for_each(|attempt| attempt.task.abort());
    }
}

impl Shared {
    /// Begins an attempt to connect.
    fn begin(self: &Arc<Self>) -> UnderWay {
        let runtime = self.endpoint.bundle().runtime().clone();
        let task = runtime.spawn(self.clone().attempt());
        let abort = task.abort_handle();
        UnderWay { outcome: task.map(Result::ok).boxed().shared(), task: abort }
    }

    /// Waits until the next attempt is due, and makes it.
    async fn attempt(self: Arc<Self>) -> Result<Arc<Connection>, Status> {
        let (next, session) = {
            let attempts = self.attempts();
            (attempts.next, attempts.session)
        };
        if let Some(next) = next {
            tokio::time::sleep_until(next).await;
        }
        let longest = self.patience.clamp(LEAST_TIME, LONGEST_TIME);
        let left = self.attempts().left.clone();
        let left = left.as_ref();
        let opening = Connection::open(&self.endpoint, &self.name, self.client, session, left);
        let opened = tokio::time::timeout(longest, opening).await.unwrap_or_else(|_| {
            Err(Status::unavailable(format!("{} has not answered within {longest:?}", self.name)))
        });
        let mut attempts = self.attempts();
        attempts.under_way = None;
        let opened = opened.and_then(|connection| match &attempts.left {
            Some(left) if connection.is_to(left) => {
                connection.leave();
                Err(Status::unavailable(format!("{} is shutting down", self.name)))
            }
            _ => Ok(connection),
        });
        match opened {
            Ok(connection) => {
                if attempts.session != 0 {
                    meters::reconnected(&self.name);
                }
                let session = connection.session;
                *attempts = Attempts { session, left: attempts.left.take(), ..Attempts::default() };
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                let doubled = self.backoff.first.saturating_mul(1 << attempts.failed.min(20));
                attempts.failed = attempts.failed.saturating_add(1);
                attempts.next = Some(deadline_after(doubled.min(self.backoff.most)));
                attempts.last = Some(why.clone());
                Err(why)
            }
        }
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").finish_non_exhaustive()
    }
}

/// The status of calls of a channel whose runtime has ended.
#[cold]
pub fn runtime_ended(name: &Name) -> Status {
    Status::unavailable(format!(
        "the runtime has ended in which the channel to {name} was made, and the channel with it: make \
         channels in a runtime that lasts for as long as they are used"
    ))
}
