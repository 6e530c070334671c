//! A connection of a session to its server, with the bulk connection that belongs to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_am::{Endpoint, Name, Peer};
use doorbell_verbs::ServiceId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::bulk::BulkConnection;
use crate::status::Status;
use crate::wire::{LEFT, Welcome};

/// A connection over which calls are sent, in the session that the server has for this client.
pub struct Connection {
    pub peer: Peer,
    /// The server's answer to the hello: the numbers of the session and of the server, and the
    /// limits of the server.
    pub welcome: Welcome,
    /// The bulk connection, once it was needed.
    bulk: Mutex<Option<Arc<BulkConnection>>>,
    endpoint: Endpoint,
    name: Name,
    /// Whether the server is shutting down, and is to be told when no call follows any more.
    is_left: AtomicBool,
}

/// How long the word that no call follows waits for a credit.
const LEFT_PATIENCE: Duration = Duration::from_secs(5);

impl Connection {
    /// A connection whose server has said hello by `welcome`.
    pub fn new(peer: Peer, welcome: Welcome, endpoint: &Endpoint, name: &Name) -> Self {
        let (endpoint, name) = (endpoint.clone(), name.clone());
        let (bulk, is_left) = (Mutex::default(), AtomicBool::new(false));
        Self { peer, welcome, bulk, endpoint, name, is_left }
    }

    /// Whether the connection has not ended.
    pub fn is_up(&self) -> bool {
        self.peer.ending().is_none()
    }

    /// Notes that the server is shutting down, and that no further call gets this connection. Calls
    /// that have it are still answered, or refused. When the last of them drops its handle to the
    /// connection, the server is told that no call follows.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// The server as a peer that is waited for until a deadline at the most.
    pub fn within(&self, deadline: Option<Instant>) -> Peer {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        deadline.map_or_else(|| self.peer.clone(), |deadline| self.peer.within(left(deadline)))
    }

    /// Checks whether the server accepts a body of `len` bytes.
    pub fn fits(&self, len: usize) -> Result<(), Status> {
        if len as u64 <= self.welcome.longest {
            return Ok(());
        }
        let why = format!(
            "the body has {len} bytes, and the server takes {} at the most: raise its `longest_body`, or \
             send a stream",
            self.welcome.longest
        );
        Err(Status::resource_exhausted(why).not_run())
    }

    /// The bulk connection to the server. It is made when it is first needed, and again when it has
    /// ended.
    pub async fn bulk(&self) -> Result<Arc<BulkConnection>, Status> {
        let mut bulk = self.bulk.lock().await;
        if let Some(bulk) = bulk.as_ref().filter(|bulk| bulk.is_up()) {
            return Ok(bulk.clone());
        }
        let (nic, address) = (self.endpoint.nic(), self.name.address());
        let Welcome { bulk_service, session, .. } = self.welcome;
        let made = BulkConnection::connect(nic, address, ServiceId(bulk_service), session).await?;
        Ok(bulk.insert(Arc::new(made)).clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            let (peer, session) = (self.peer.within(LEFT_PATIENCE), self.welcome.session);
            self.peer.runtime().spawn(async move { peer.request(LEFT, [session]).await });
        }
    }
}

/// A text about a server that stands behind the server's name, and does not repeat the name.
pub fn unnamed(text: &str, name: &Name) -> String {
    text.replace(&name.to_string(), "the server").replace(name.address(), "the server")
}
