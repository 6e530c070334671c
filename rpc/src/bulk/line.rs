//! Connections of the NIC over which long bodies are written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use doorbell_verbs::{
    ConnectionState, Domain, Listener, Nic, QueuePair, QueuePairConfig, Region, Registered,
    RemoteMemory, Rights, ServiceId,
};
use futures_util::stream::{self, StreamExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::meters;
use crate::status::Status;

/// How many bytes a write has at most, and how many writes are under way.
const PART: usize = 1 << 20;
const AT_ONCE: usize = 4;

/// A connection over which either end writes into memory that the other has lent.
#[derive(Debug)]
pub struct Line {
    pair: QueuePair,
    domain: Domain,
}

impl Line {
    /// Connects to the server at an address that takes lines by a service, for a session.
    pub async fn connect(
        nic: &Nic,
        address: &str,
        service: ServiceId,
        session: u64,
    ) -> Result<Self, Status> {
        let domain = nic.domain();
        let failed = |why: &dyn std::fmt::Display| {
            Status::unavailable(format!(
                "connecting to {address} for bodies that are too long for messages: {why}"
            ))
        };
        let pair = domain.queue_pair(&QueuePairConfig::default()).map_err(|why| failed(&why))?;
        let connected = pair.connect(address, service, &session.to_be_bytes()).await;
        let (pair, _) = connected.map_err(|why| failed(&why))?;
        Ok(Self { pair, domain })
    }

    /// Registers memory into which the other end may write.
    ///
    /// # Errors
    /// When the NIC has as many registrations as it may have.
    pub fn lend(&self, region: Region) -> Result<Registered, Status> {
        self.domain.register(region, Rights::REMOTE_WRITE).map_err(|why| {
            Status::resource_exhausted(format!("registering memory for a body: {why}"))
        })
    }

    /// Writes a body into memory that the other end has lent, or no more of it once it is
    /// `given_up`. When this is done, nothing is being written any more.
    ///
    /// # Errors
    /// When the connection ends, or the body is given up.
    pub async fn write(
        &self,
        body: &Bytes,
        to: RemoteMemory,
        given_up: &AtomicBool,
    ) -> Result<(), Status> {
        let begins = (0..body.len()).step_by(PART);
        let begins = begins.take_while(|_| !given_up.load(Ordering::Relaxed));
        let parts = begins.map(|begin| {
            let part = body.slice(begin..body.len().min(begin + PART));
            async move {
                let there = to.at(begin as u64, part.len() as u64).map_err(|why| {
                    Status::internal(format!("the other end has lent too little memory: {why}"))
                })?;
                self.pair.write(part, there).await.map(drop).map_err(|why| {
                    Status::unavailable(format!("writing a body of {} bytes: {why}", body.len()))
                })
            }
        });
        // A part that fails does not end the others, which are waited for.
        let written: Vec<_> = stream::iter(parts).buffered(AT_ONCE).collect().await;
        let all = written.len() == body.len().div_ceil(PART);
        written.into_iter().collect::<Result<(), _>>()?;
        if !all {
            return Err(Status::cancelled("the body was given up while it was written"));
        }
        meters::body_sent(body.len());
        Ok(())
    }

    /// Whether the connection has not ended.
    pub fn is_up(&self) -> bool {
        matches!(self.pair.connection().state(), ConnectionState::Connected)
    }
}

/// The lines of a server, by sessions.
#[derive(Debug, Default)]
pub struct Lines {
    by_session: Mutex<HashMap<u64, Accepted>>,
    added: Notify,
}

/// A line that was accepted.
#[derive(Debug)]
struct Accepted {
    /// How many lines were asked for before this one.
    order: u64,
    line: Arc<Line>,
}

/// The most lines that are being accepted at a time. Others wait.
const MOST_HALF_MADE: usize = 256;

/// How long a server waits for a line that its client has made already.
const PATIENCE: Duration = Duration::from_secs(10);

impl Lines {
    /// Takes the lines of clients, for as long as this runs. `is_session` tells whether there is a
    /// session of a number.
    pub async fn serve(&self, nic: Nic, mut listener: Listener, is_session: impl Fn(u64) -> bool) {
        let domain = nic.domain();
        // A client that goes in the middle is waited for, and must not hold up the others.
        let (mut half_made, mut orders) = (JoinSet::new(), 0_u64..);
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept(), if half_made.len() < MOST_HALF_MADE => incoming,
                Some(made) = half_made.join_next() => {
                    match made {
                        Ok((session, order, Ok(line))) => self.add(session, Accepted { order, line }),
                        Ok((_, _, Err(why))) => {
                            tracing::debug!(%why, "a client's line for bodies was not accepted");
                        }
                        Err(why) => tracing::error!(%why, "accepting a line for bodies"),
                    }
                    continue;
                }
            };
            let session = incoming.private().first_chunk().copied().map(u64::from_be_bytes);
            let Some(session) = session.filter(|&session| is_session(session)) else {
                let _ = incoming.reject(b"there is no such session");
                continue;
            };
            let (domain, order) = (domain.clone(), orders.next().unwrap_or(u64::MAX));
            half_made.spawn(async move {
                let accepted = incoming.accept(&domain).await;
                (session, order, accepted.map(|pair| Arc::new(Line { pair, domain })))
            });
        }
    }

    /// Adds the line of a session, in the place of one that was asked for before.
    fn add(&self, session: u64, accepted: Accepted) {
        let mut lines = self.lock();
        let before = lines.get(&session);
        if before.is_none_or(|before| before.order < accepted.order || !before.line.is_up()) {
            lines.insert(session, accepted);
        }
        drop(lines);
        self.added.notify_waiters();
    }

    /// Drops the lines that have ended, and those of sessions whose clients are not connected.
    pub fn sweep(&self, is_connected: impl Fn(u64) -> bool) {
        let ended: Vec<_> = {
            let mut lines = self.lock();
            let ended =
                |&session: &u64, of: &mut Accepted| !of.line.is_up() || !is_connected(session);
            lines.extract_if(ended).collect()
        };
        drop(ended);
    }

    /// The line of a session. A client makes it before it speaks of it; it may be accepted a little
    /// later.
    ///
    /// # Errors
    /// When the client has made none.
    pub async fn of(&self, session: u64) -> Result<Arc<Line>, Status> {
        let found = async {
            loop {
                let mut added = std::pin::pin!(self.added.notified());
                added.as_mut().enable();
                let line = self.lock().get(&session).map(|accepted| accepted.line.clone());
                if let Some(line) = line.filter(|line| line.is_up()) {
                    return line;
                }
                added.await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.map_err(|_| {
            Status::unavailable(
                "the client has made no connection for bodies too long for messages",
            )
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Accepted>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
