//! The connections for pulls that peers make to this endpoint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use doorbell_verbs::floor::locked;
use doorbell_verbs::{ConnectionState, Domain, Listener, QueuePair};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

/// The connections for pulls that peers have made, by the tokens that they were given.
#[derive(Debug, Default)]
pub struct PullService {
    accepted: Mutex<HashMap<u64, Option<Accepted>>>,
    added: Notify,
}

/// A connection over which either side reads the other's memory.
pub type Accepted = Arc<QueuePair>;

/// The most connections that are being accepted at a time. Further peers wait.
const MOST_HALF_MADE: usize = 64;

impl PullService {
    /// Draws a token for a peer, which may connect from now on.
    pub fn admit(&self) -> u64 {
        let token = getrandom::u64().expect("Linux has random numbers once it has started");
        self.lock().insert(token, None);
        token
    }

    /// Forgets a peer that has gone, and its connection.
    pub fn forget(&self, token: u64) {
        let forgotten = self.lock().remove(&token);
        drop(forgotten);
        self.added.notify_waiters();
    }

    /// Accepts connections of peers that show their tokens, for as long as the future is polled.
    /// The memory that they read is registered in `domain`.
    pub async fn serve(&self, domain: Domain, mut listener: Listener) {
        // A peer that goes away in the middle of connecting must not hold up others, so each
        // connection is accepted by a task of its own, and a peer has one such task at most.
        let (mut half_made, mut by_token) = (JoinSet::new(), HashMap::<u64, AbortHandle>::new());
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept(), if half_made.len() < MOST_HALF_MADE => {
                    let Ok(incoming) = incoming else { return };
                    incoming
                }
                Some(made) = half_made.join_next() => {
                    if let Ok((token, Ok(pair))) = made {
                        self.add(token, pair);
                    }
                    by_token.retain(|_, task| !task.is_finished());
                    continue;
                }
            };
            let token = incoming.private().first_chunk().copied().map(u64::from_be_bytes);
            let Some(token) = token.filter(|token| self.lock().contains_key(token)) else {
                let _ = incoming.reject(b"no peer was given this token");
                continue;
            };
            let domain = domain.clone();
            let task = half_made.spawn(async move { (token, incoming.accept(&domain).await) });
            if let Some(before) = by_token.insert(token, task) {
                before.abort();
            }
        }
    }

    /// Adds a connection, unless the peer has gone meanwhile. The last connection of a peer counts.
    fn add(&self, token: u64, pair: QueuePair) {
        if let Some(accepted) = self.lock().get_mut(&token) {
            *accepted = Some(Arc::new(pair));
        }
        self.added.notify_waiters();
    }

    /// Returns whether the peer with this token has a connection that has not ended.
    pub fn has(&self, token: u64) -> bool {
        self.lock().get(&token).and_then(Option::as_ref).is_some_and(|pair| is_up(pair))
    }

    /// Waits for the connection of the peer with this token. Returns `None` if the peer has gone.
    pub async fn connection(&self, token: u64) -> Option<Accepted> {
        loop {
            let mut added = std::pin::pin!(self.added.notified());
            added.as_mut().enable();
            let accepted = self.lock().get(&token)?.clone();
            if let Some(pair) = accepted.filter(|pair| is_up(pair)) {
                return Some(pair);
            }
            added.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Option<Accepted>>> {
        locked(&self.accepted)
    }
}

/// Returns whether a connection has not ended.
pub(super) fn is_up(pair: &QueuePair) -> bool {
    matches!(pair.connection().state(), ConnectionState::Connected)
}
