//! Reconnecting: the connection that a channel has, and the next one when it has ended.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use doorbell_am::{Endpoint, Name};
use doorbell_verbs::Nic;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use crate::meters;
use crate::status::Status;

/// How long a channel waits between attempts to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait: each is twice as long as the one before, up to this.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(10), most: Duration::from_secs(1) }
    }
}

/// Keeps a connection to a server, and makes another one when it has ended.
#[derive(Debug)]
pub struct Connector {
    endpoint: Endpoint,
    name: Name,
    /// The client's number, drawn at random.
    client: u64,
    backoff: Backoff,
    /// How long a call without a deadline waits for a connection.
    patience: Duration,
    current: RwLock<Option<Arc<Connection>>>,
    /// Held by whoever connects.
    attempts: Mutex<Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    /// The session of the last connection, to go on with.
    session: u64,
    failed: u32,
    next: Option<Instant>,
    last: Option<Status>,
}

impl Connector {
    pub fn new(endpoint: Endpoint, name: Name, backoff: Backoff, patience: Duration) -> Self {
        Self {
            endpoint,
            name,
            client: crate::random(),
            backoff,
            patience,
            current: RwLock::new(None),
            attempts: Mutex::default(),
        }
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn nic(&self) -> &Nic {
        self.endpoint.nic()
    }

    /// The connection, if there is one.
    pub fn current(&self) -> Option<Arc<Connection>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|connection| connection.is_up()).cloned()
    }

    /// The connection; if there is none, it is made, with a pause after each attempt that fails,
    /// until the deadline or, without one, as long as the channel waits for connections.
    ///
    /// # Errors
    /// Why there is no connection in time.
    pub async fn connection(&self, deadline: Option<Instant>) -> Result<Arc<Connection>, Status> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let until = Instant::now() + self.patience;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        loop {
            let attempt = tokio::time::timeout_at(until, self.attempt());
            match attempt.await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(refused)) if refused.code() != crate::Code::Unavailable => {
                    return Err(refused);
                }
                Ok(Err(_)) => {}
                Err(_) => return Err(self.no_connection(deadline == Some(until))),
            }
        }
    }

    /// Waits until an attempt is due, unless somebody else connects meanwhile, and makes it.
    async fn attempt(&self) -> Result<Arc<Connection>, Status> {
        let mut attempts = self.attempts.lock().await;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        if let Some(next) = attempts.next {
            tokio::time::sleep_until(next).await;
        }
        let opened = Connection::open(&self.endpoint, &self.name, self.client, attempts.session);
        match opened.await {
            Ok(connection) => {
                if attempts.session != 0 {
                    meters::reconnected(&self.name);
                }
                let session = connection.session;
                *attempts = Attempts { session, ..Attempts::default() };
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                let doubled = self.backoff.first.saturating_mul(1 << attempts.failed.min(20));
                attempts.failed += 1;
                attempts.next = Some(Instant::now() + doubled.min(self.backoff.most));
                attempts.last = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Why there is no connection when the time for one is over.
    fn no_connection(&self, by_deadline: bool) -> Status {
        let last = self.attempts.try_lock().ok().and_then(|attempts| attempts.last.clone());
        let why = last.as_ref().map_or("no attempt has ended yet", Status::message);
        let text = format!("there is no connection to {} in time: {why}", self.name);
        let status =
            if by_deadline { Status::deadline_exceeded(text) } else { Status::unavailable(text) };
        match last {
            Some(last) => status.with_source(last),
            None => status,
        }
    }
}
