//! Bodies that are sent: from the offer to the word that all is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use doorbell_am::Peer;
use doorbell_verbs::RemoteMemory;
use tokio::sync::oneshot;

use super::line::Line;
use super::transfers::Transfers;
use super::word::{say_written, tell_written};
use crate::status::Status;
use crate::stream::Key;

/// A body that the other end may lend memory for. Whenever the other end has lent some, it is told
/// when nothing writes there any more, however that came.
pub struct Offered {
    transfers: Arc<Transfers>,
    key: Key,
    peer: Peer,
    body: Bytes,
    lent: oneshot::Receiver<RemoteMemory>,
}

impl Offered {
    /// Prepares a body to be sent: the other end may lend memory for it from now on.
    pub fn new(transfers: &Arc<Transfers>, key: Key, peer: &Peer, body: Bytes) -> Self {
        let lent = transfers.offer(key, peer);
        Self { transfers: transfers.clone(), key, peer: peer.clone(), body, lent }
    }

    /// The length of the body.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Waits until the other end has lent memory, and writes the body there over the line that
    /// `line` gives. If this is dropped meanwhile, what is being written is still written, and no
    /// more.
    ///
    /// # Errors
    /// When the other end goes, or does not lend memory for all of the body.
    pub async fn write(
        mut self,
        line: impl Future<Output = Result<Arc<Line>, Status>>,
    ) -> Result<(), Status> {
        let gone =
            |why: &dyn std::fmt::Display| Status::unavailable(format!("sending a body: {why}"));
        let memory = (&mut self.lent).await.map_err(|_| gone(&"the connection has ended"))?;
        let owes = OwesWord { peer: self.peer.clone(), key: self.key, is_told: false };
        let line = line.await?;
        let given_up = GivenUp::default();
        let (body, seen) = (self.body.clone(), given_up.0.clone());
        let writes = self.peer.runtime().spawn(async move {
            let written = line.write(&body, memory, &seen).await;
            // Whoever waits for the body to be sent waits for the word, too.
            owes.tell(written.is_ok()).await;
            written
        });
        writes.await.unwrap_or_else(|why| Err(gone(&why)))
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        if !self.transfers.withdraw(self.key, &self.peer) {
            // Memory may have been lent that nobody has looked at.
            self.lent.close();
            if self.lent.try_recv().is_ok() {
                tell_written(&self.peer, self.key, false);
            }
        }
    }
}

/// Tells whoever writes a body, when this is dropped, that nobody waits for that any more.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The word that the receiver of a body waits for. If it is not told, the receiver hears when this
/// is dropped that the body is not there.
struct OwesWord {
    peer: Peer,
    key: Key,
    is_told: bool,
}

impl OwesWord {
    /// Tells the receiver whether the body is there as a whole.
    async fn tell(mut self, whole: bool) {
        self.is_told = true;
        say_written(&self.peer, self.key, whole).await;
    }
}

impl Drop for OwesWord {
    fn drop(&mut self) {
        if !self.is_told {
            tell_written(&self.peer, self.key, false);
        }
    }
}
