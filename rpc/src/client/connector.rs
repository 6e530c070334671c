//! Keeping a connection: the one that a channel has, and the next one when that has ended.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use doorbell_am::{Endpoint, Name, Peer};
use doorbell_verbs::Nic;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::connection::{Connection, Unopened};
use super::standing::{Standing, runtime_ended};
use crate::alarm::{Late, until};
use crate::deadlines::deadline_after;
use crate::meters;
use crate::status::{Code, Status};

/// Keeps a connection to a server, and makes the next one when the connection has ended.
///
/// Attempts to connect are made by a task of the channel, which the first call begins that finds no
/// connection, and which goes on until there is one. A call whose deadline passes leaves the
/// attempts to the calls that follow.
#[derive(Debug)]
pub struct Connector(Arc<Shared>);

/// The state that a connector shares with the task that connects.
struct Shared {
    endpoint: Endpoint,
    name: Name,
    /// The client's number, drawn at random.
    client: u64,
    backoff: Backoff,
    /// How long a server may be silent before it counts as gone.
    patience: Duration,
    current: RwLock<Option<Arc<Connection>>>,
    standing: watch::Sender<Standing>,
    attempts: Mutex<Attempts>,
}

#[derive(Default)]
struct Attempts {
    /// The number of the session of the last connection, to go on with; zero before the first.
    session: u64,
    /// The error of the last attempt, if one has failed since there was a connection.
    last: Option<Status>,
    /// The task that makes attempts, while there is one.
    task: Option<AbortHandle>,
    /// The connection whose server has said that it shuts down. Calls may still wait for answers.
    left: Option<Peer>,
}

/// The least time that an attempt is given, however short the channel's patience is.
const LEAST_TIME: Duration = Duration::from_secs(5);
/// The most time that an attempt is given, however long the channel's patience is.
const LONGEST_TIME: Duration = Duration::from_secs(60);

impl Connector {
    /// Makes a connector whose server counts as gone when it has been silent to attempts for the
    /// time `patience`.
    pub fn new(endpoint: Endpoint, name: Name, backoff: Backoff, patience: Duration) -> Self {
        Self(Arc::new(Shared {
            endpoint,
            name,
            client: crate::random(),
            backoff,
            patience,
            current: RwLock::new(None),
            standing: watch::Sender::new(Standing::Idle),
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
        self.0.current()
    }

    /// Returns the connection of the channel. If there is none, waits while one is being made, but
    /// not beyond the deadline. With `waits`, also waits while the server is gone.
    ///
    /// # Errors
    /// When the server is gone, refuses this client, or can't be connected to by the deadline.
    pub async fn connection(
        &self,
        deadline: Option<Instant>,
        waits: bool,
    ) -> Result<Arc<Connection>, Status> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        match until(deadline, self.comes(waits)).await {
            Ok(comes) => comes.map_err(Status::not_run),
            Err(Late) => {
                let last = self.0.attempts().last.clone();
                let why = last.as_ref().map_or("no attempt has ended yet", Status::message);
                let text = format!("there is no connection to {} in time: {why}", self.0.name);
                Err(Status::deadline_exceeded(text).not_run())
            }
        }
    }

    /// Waits for a connection, and has one made.
    async fn comes(&self, waits: bool) -> Result<Arc<Connection>, Status> {
        let mut standing = self.0.connect();
        loop {
            let stands = standing.borrow_and_update().clone();
            match stands {
                Standing::Up => match self.current() {
                    Some(connection) => return Ok(connection),
                    None => {
                        standing = self.0.connect();
                        continue;
                    }
                },
                Standing::Gone(why) if why.code() != Code::Unavailable => return Err(why),
                Standing::Gone(why) if !waits => {
                    let why = why.message();
                    let text = format!("there is no connection to {}: {why}", self.0.name);
                    return Err(Status::unavailable(text));
                }
                Standing::Over => return Err(runtime_ended(&self.0.name)),
                Standing::Idle | Standing::Connecting | Standing::Gone(_) => {}
            }
            if standing.changed().await.is_err() {
                return Err(runtime_ended(&self.0.name));
            }
        }
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
            drop((current, attempts));
            if let Some(left) = left {
                left.leave();
                drop(shared.connect());
            }
        }
    }

    /// Has a connection made unless there is one, and waits until there is one.
    ///
    /// # Errors
    /// When the runtime of the channel has ended.
    pub fn ready(&self) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let (mut standing, name) = (self.0.connect(), self.0.name.clone());
        async move {
            let ended = |stands: &Standing| matches!(stands, Standing::Up | Standing::Over);
            match standing.wait_for(ended).await.as_deref() {
                Ok(Standing::Up) => Ok(()),
                _ => Err(runtime_ended(&name)),
            }
        }
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.0.attempts().task.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn current(&self) -> Option<Arc<Connection>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|connection| connection.is_up()).cloned()
    }

    /// Begins to make a connection, unless there is one or one is being made. Returns how the
    /// channel stands with its server from now on.
    fn connect(self: &Arc<Self>) -> watch::Receiver<Standing> {
        let mut attempts = self.attempts();
        if attempts.task.is_none() && self.current().is_none() {
            self.standing.send_replace(Standing::Connecting);
            let task = Task { shared: self.clone(), is_up: false }.run();
            attempts.task = Some(self.endpoint.bundle().runtime().spawn(task).abort_handle());
        }
        self.standing.subscribe()
    }

    /// Makes attempts, with pauses between them, until there is a connection.
    async fn attempt_until_up(&self) {
        let mut silent_until = Some(deadline_after(self.patience));
        let mut failed = 0;
        loop {
            let mut attempt = std::pin::pin!(self.attempt());
            let outcome = match until(silent_until, attempt.as_mut()).await {
                Ok(outcome) => outcome,
                Err(Late) => {
                    silent_until = None;
                    self.is_gone(self.silent(self.patience));
                    attempt.await
                }
            };
            let Err(why) = outcome.and_then(|connection| self.is_up(connection)) else { return };
            self.attempts().last = Some(why.status.clone());
            let is_over = silent_until.is_none_or(|until| until <= Instant::now());
            if is_over || !why.may_be_there {
                silent_until = None;
                self.is_gone(why.status);
            }
            failed += 1;
            let pause = deadline_after(self.backoff.pause(failed));
            tokio::time::sleep_until(pause).await;
        }
    }

    /// Makes one attempt to connect.
    async fn attempt(&self) -> Result<Arc<Connection>, Unopened> {
        let (session, left) = {
            let attempts = self.attempts();
            (attempts.session, attempts.left.clone())
        };
        let left = left.as_ref();
        let longest = self.patience.clamp(LEAST_TIME, LONGEST_TIME);
        let opening = Connection::open(&self.endpoint, &self.name, self.client, session, left);
        match tokio::time::timeout(longest, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(Unopened { status: self.silent(longest), may_be_there: true }),
        }
    }

    /// The status of a server that has been silent to attempts for some time.
    fn silent(&self, time: Duration) -> Status {
        let last = self.attempts().last.clone();
        last.unwrap_or_else(|| Status::unavailable(format!("it has not answered within {time:?}")))
    }

    /// Notes that the server is gone: calls that do not wait for it fail.
    fn is_gone(&self, why: Status) {
        self.standing.send_replace(Standing::Gone(why));
    }

    /// Notes that there is a connection. The task of attempts ends with this.
    ///
    /// # Errors
    /// When the server has said meanwhile that it shuts down.
    fn is_up(&self, connection: Arc<Connection>) -> Result<(), Unopened> {
        let mut attempts = self.attempts();
        if attempts.left.as_ref().is_some_and(|left| connection.is_to(left)) {
            connection.leave();
            return Err(Status::unavailable("the server is shutting down").into());
        }
        if attempts.session != 0 {
            meters::reconnected(&self.name);
        }
        let left = attempts.left.take();
        *attempts = Attempts { session: connection.session, left, ..Attempts::default() };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        self.standing.send_replace(Standing::Up);
        Ok(())
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stands = self.standing.borrow();
        f.debug_struct("Connector").field("name", &self.name).field("stands", &*stands).finish()
    }
}

/// The task that makes attempts until there is a connection. When the task is dropped before, which
/// happens when the channel's runtime ends, it notes that the channel is over.
struct Task {
    shared: Arc<Shared>,
    is_up: bool,
}

impl Task {
    async fn run(mut self) {
        self.shared.attempt_until_up().await;
        self.is_up = true;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.is_up {
            self.shared.standing.send_replace(Standing::Over);
        }
    }
}
