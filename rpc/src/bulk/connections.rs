//! The bulk connections that a server has accepted from its clients.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Listener, Nic};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::connection::BulkConnection;
use crate::status::Status;

/// The bulk connections of a server, by the sessions of the clients that have made them.
#[derive(Debug, Default)]
pub struct BulkConnections {
    by_session: Mutex<HashMap<u64, Accepted>>,
    added: Notify,
}

/// A bulk connection that was accepted.
#[derive(Debug)]
struct Accepted {
    /// The number of bulk connections that clients had asked for before this one.
    order: u64,
    connection: Arc<BulkConnection>,
}

/// The most bulk connections that are being accepted at a time. Further clients wait.
const MOST_HALF_MADE: usize = 256;

/// The most of them that one client has. It asks for one at a time, and gives that up before it asks
/// for the next; but a network may bring the two in any order.
const MOST_HALF_MADE_BY_ONE: usize = 4;

/// How long a server waits for a bulk connection that its client has made already. The client's last
/// packet of the connection may be lost several times.
const PATIENCE: Duration = Duration::from_secs(30);

impl BulkConnections {
    /// Accepts bulk connections for as long as the future is polled. `is_session` tells whether
    /// there is a session with a given number; clients without a session are rejected.
    pub async fn serve(&self, nic: Nic, mut listener: Listener, is_session: impl Fn(u64) -> bool) {
        let domain = nic.domain();
        // A client that goes away in the middle of connecting must not hold up others, so each
        // connection is accepted by a task of its own, and a client has few such tasks.
        let (mut half_made, mut orders) = (JoinSet::new(), 0_u64..);
        let mut by_session = HashMap::<u64, VecDeque<AbortHandle>>::new();
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept(), if half_made.len() < MOST_HALF_MADE => {
                    let Ok(incoming) = incoming else { return };
                    incoming
                }
                Some(made) = half_made.join_next() => {
                    match made {
                        Ok((session, order, Ok(connection))) => {
                            self.add(session, Accepted { order, connection });
                        }
                        Ok((_, _, Err(why))) => {
                            tracing::debug!(%why, "a client's connection for bodies was not accepted");
                        }
                        Err(why) if why.is_cancelled() => {}
                        Err(why) => tracing::error!(%why, "accepting a connection for bodies"),
                    }
                    by_session.retain(|_, tasks| {
                        tasks.retain(|task| !task.is_finished());
                        !tasks.is_empty()
                    });
                    continue;
                }
            };
            let session = incoming.private().first_chunk().copied().map(u64::from_be_bytes);
            let Some(session) = session.filter(|&session| is_session(session)) else {
                let _ = incoming.reject(b"there is no such session");
                continue;
            };
            let (domain, order) = (domain.clone(), orders.next().unwrap_or(u64::MAX));
            let task = half_made.spawn(async move {
                let accepted = incoming.accept(&domain).await;
                (session, order, accepted.map(|pair| Arc::new(BulkConnection::of(pair, domain))))
            });
            let tasks = by_session.entry(session).or_default();
            tasks.push_back(task);
            if tasks.len() > MOST_HALF_MADE_BY_ONE {
                tasks.pop_front().expect("there are some").abort();
            }
        }
    }

    /// Adds the bulk connection of a session, in place of one that was asked for earlier or has
    /// ended.
    fn add(&self, session: u64, accepted: Accepted) {
        let mut connections = locked(&self.by_session);
        let before = connections.get(&session);
        if before.is_none_or(|before| before.order < accepted.order || !before.connection.is_up()) {
            connections.insert(session, accepted);
        }
        drop(connections);
        self.added.notify_waiters();
    }

    /// Drops the bulk connections that have ended, and those of sessions whose clients are not
    /// connected.
    pub fn sweep(&self, is_connected: impl Fn(u64) -> bool) {
        let ended: Vec<_> = {
            let mut connections = locked(&self.by_session);
            let ended = |&session: &u64, of: &mut Accepted| {
                !of.connection.is_up() || !is_connected(session)
            };
            connections.extract_if(ended).collect()
        };
        drop(ended);
    }

    /// The bulk connection of a session. A client makes the connection before it sends a message
    /// that needs it, but the server may accept the connection a little later, so this waits.
    ///
    /// # Errors
    /// When the client has made no bulk connection.
    pub async fn of(&self, session: u64) -> Result<Arc<BulkConnection>, Status> {
        let found = async {
            loop {
                let mut added = std::pin::pin!(self.added.notified());
                added.as_mut().enable();
                let connection = locked(&self.by_session)
                    .get(&session)
                    .map(|accepted| accepted.connection.clone());
                if let Some(connection) = connection.filter(|connection| connection.is_up()) {
                    return connection;
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
}
