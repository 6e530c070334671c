//! Keeping a connection: the one that a session has, and the next one when that has ended.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Endpoint, Name, Peer};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::Connection;
use super::greeting::{Unopened, greet};
use super::states::{Standing, runtime_ended};
use crate::alarm::{Late, until};
use crate::client::backoff::Backoff;
use crate::deadlines::deadline_after;
use crate::meters;
use crate::status::Status;

/// Keeps a connection to a server, and makes the next one when the connection has ended.
///
/// Attempts to connect are made by a task of the channel, which the first call begins that finds no
/// connection, and which goes on until there is one. A call whose deadline passes leaves the
/// attempts to the calls that follow.
pub struct Connector {
    pub endpoint: Endpoint,
    pub name: Name,
    /// The client's number, drawn at random.
    client: u64,
    backoff: Backoff,
    /// How long a server may be silent before it counts as gone.
    patience: Duration,
    standing: watch::Sender<Standing>,
}

/// The least time that an attempt is given, however short the channel's patience is.
const LEAST_TIME: Duration = Duration::from_secs(5);
/// The most time that an attempt is given, however long the channel's patience is.
const LONGEST_TIME: Duration = Duration::from_secs(60);

impl Connector {
    /// Makes a connector whose server counts as gone when it has been silent to attempts for the
    /// time `patience`.
    pub fn new(endpoint: Endpoint, name: Name, backoff: Backoff, patience: Duration) -> Arc<Self> {
        let (client, standing) = (crate::random(), watch::Sender::new(Standing::idle()));
        Arc::new(Self { endpoint, name, client, backoff, patience, standing })
    }

    /// The connection, if there is one that has not ended.
    pub fn current(&self) -> Option<Arc<Connection>> {
        self.standing.borrow().connection().cloned()
    }

    /// The connection of the session, which may have ended.
    pub fn latest(&self) -> Option<Arc<Connection>> {
        self.standing.borrow().latest()
    }

    /// Returns the connection of the session. If there is none, has one made, and waits for it.
    /// With `waits`, also waits while the server is gone.
    ///
    /// # Errors
    /// When the server is gone, or refuses this client.
    pub async fn connection(self: &Arc<Self>, waits: bool) -> Result<Arc<Connection>, Status> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        loop {
            let mut standing = self.connect();
            if let Some(outcome) = standing.borrow_and_update().outcome(waits, &self.name) {
                return outcome;
            }
            standing.changed().await.map_err(|_| runtime_ended(&self.name))?;
        }
    }

    /// The message for a caller for whom there is no connection in time.
    pub fn no_connection_in_time(&self) -> String {
        let standing = self.standing.borrow();
        let why = standing.last_failure().map_or("no attempt has ended yet", Status::message);
        format!("there is no connection to {} in time: {why}", self.name)
    }

    /// Has a connection made unless there is one, and waits until there is one.
    ///
    /// # Errors
    /// When the runtime of the channel has ended.
    pub fn ready(self: &Arc<Self>) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let (mut standing, name) = (self.connect(), self.name.clone());
        async move {
            match standing.wait_for(Standing::is_settled).await {
                Ok(standing) if !standing.is_over() => Ok(()),
                _ => Err(runtime_ended(&name)),
            }
        }
    }

    /// Takes in that sending over a connection has failed, so that the next call gets another one.
    pub fn breaks(&self, connection: &Arc<Connection>) {
        self.change(|standing| standing.breaks(connection));
    }

    /// Takes in that the server of a connection has said that it shuts down, by a message or by
    /// refusing a call: the connection takes no more calls, and the next one is attempted.
    pub fn leaves(self: &Arc<Self>, server: &Peer) {
        if self.change(|standing| standing.left_by(server)) {
            self.connect();
        }
    }

    /// Ends the session, and the task that makes attempts if there is one.
    pub fn close(&self) {
        self.change(Standing::ends);
    }

    /// Begins to make a connection, unless there is one or one is being made. Returns how the
    /// session stands with its server from now on.
    fn connect(self: &Arc<Self>) -> watch::Receiver<Standing> {
        if self.change(Standing::begins) {
            let task = Attempts { connector: self.clone(), is_up: false };
            self.endpoint.bundle().runtime().spawn(task.run());
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
                    self.failed(self.silent(self.patience), true);
                    attempt.await
                }
            };
            let Err(why) = outcome.and_then(|connection| self.opened(connection)) else { return };
            let is_over = silent_until.is_none_or(|until| until <= Instant::now());
            let is_gone = is_over || !why.may_be_there;
            silent_until = silent_until.filter(|_| !is_gone);
            self.failed(why.status, is_gone);
            failed += 1;
            let pause = deadline_after(self.backoff.pause(failed));
            tokio::time::sleep_until(pause).await;
        }
    }

    /// Makes one attempt to connect.
    async fn attempt(&self) -> Result<Arc<Connection>, Unopened> {
        let before = self.standing.borrow().before();
        let longest = self.patience.clamp(LEAST_TIME, LONGEST_TIME);
        let greeting = greet(&self.endpoint, &self.name, self.client, before);
        match tokio::time::timeout(longest, greeting).await {
            Ok(greeted) => greeted,
            Err(_) => Err(Unopened { status: self.silent(longest), may_be_there: true }),
        }
    }

    /// The status of a server that has been silent to attempts for some time.
    fn silent(&self, time: Duration) -> Status {
        let last = self.standing.borrow().last_failure().cloned();
        last.unwrap_or_else(|| Status::unavailable(format!("it has not answered within {time:?}")))
    }

    /// Notes that an attempt has failed. If the server counts as gone, calls that do not wait for
    /// it fail.
    fn failed(&self, why: Status, is_gone: bool) {
        self.change(|standing| standing.failed(why, is_gone));
    }

    /// Notes that there is a connection. The task that makes attempts ends with this.
    ///
    /// # Errors
    /// When the server has said meanwhile that it shuts down.
    fn opened(&self, connection: Arc<Connection>) -> Result<(), Unopened> {
        let mut before = 0;
        let is_up = self.change(|standing| {
            before = standing.before().0;
            standing.opened(&connection)
        });
        if !is_up {
            return Err(Status::unavailable("the server is shutting down").into());
        }
        if before != 0 {
            meters::reconnected(&self.name);
        }
        Ok(())
    }

    /// Changes how the session stands with its server by a transition, which tells whether tasks
    /// are to look at the new state. Returns what the transition has returned.
    fn change(&self, transition: impl FnOnce(&mut Standing) -> bool) -> bool {
        // A connection may have much to do when it is dropped, so the lock is given back first.
        let mut _dropped = None;
        self.standing.send_if_modified(|standing| {
            _dropped = standing.latest();
            transition(standing)
        })
    }
}

/// The task that makes attempts until there is a connection, or the session is over. When the task
/// is dropped before, which happens when the channel's runtime ends, the session is over, too.
struct Attempts {
    connector: Arc<Connector>,
    is_up: bool,
}

impl Attempts {
    async fn run(mut self) {
        let mut standing = self.connector.standing.subscribe();
        tokio::select! {
            biased;
            _ = standing.wait_for(Standing::is_over) => return,
            () = self.connector.attempt_until_up() => {}
        }
        self.is_up = true;
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        if !self.is_up {
            self.connector.close();
        }
    }
}
