//! Bodies that are sent: offering a body, writing it, and telling the receiver when it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use doorbell_am::Peer;
use doorbell_verbs::RemoteMemory;
use tokio::sync::oneshot;

use super::connection::BulkConnection;
use super::notice::send_written;
use super::transfers::Transfers;
use crate::status::Status;
use crate::wire::CallKey;

/// A body that this end sends, from the offer until it is written or dropped. Whenever the receiver
/// has lent memory for it, the receiver is sent a `WRITTEN`, however the transfer ends.
pub struct Offered {
    transfers: Arc<Transfers>,
    key: CallKey,
    peer: Peer,
    body: Bytes,
    lent: oneshot::Receiver<RemoteMemory>,
}

impl Offered {
    /// Offers a body to its receiver: from now on the receiver may lend memory for it.
    pub fn new(transfers: &Arc<Transfers>, key: CallKey, peer: &Peer, body: Bytes) -> Self {
        let lent = transfers.offer(key, peer);
        Self { transfers: transfers.clone(), key, peer: peer.clone(), body, lent }
    }

    /// The length of the body in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Waits until the receiver has lent memory, and writes the body there over the bulk connection
    /// that the future `connection` resolves to. If this is dropped meanwhile, the parts under way
    /// are still written, and no others.
    ///
    /// # Errors
    /// When the receiver goes away, or lends less memory than the body is long.
    pub async fn write(
        mut self,
        connection: impl Future<Output = Result<Arc<BulkConnection>, Status>>,
    ) -> Result<(), Status> {
        let gone =
            |why: &dyn std::fmt::Display| Status::unavailable(format!("sending a body: {why}"));
        let memory = (&mut self.lent).await.map_err(|_| gone(&"the connection has ended"))?;
        let (transfers, peer) = (self.transfers.clone(), self.peer.clone());
        let owes = WrittenNotice { transfers, peer, key: self.key, is_told: false };
        let connection = connection.await?;
        let given_up = GivenUp::default();
        let (body, seen) = (self.body.clone(), given_up.0.clone());
        let writes = self.peer.runtime().spawn(async move {
            let written = connection.write(&body, memory, &seen).await;
            // `WRITTEN` is sent before this returns, so that the sender of the call waits for it,
            // too.
            owes.tell(written.is_ok()).await;
            written
        });
        writes.await.unwrap_or_else(|why| Err(gone(&why)))
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        if !self.transfers.withdraw(self.key, &self.peer) {
            // Memory may have been lent that nothing has taken yet.
            self.lent.close();
            if self.lent.try_recv().is_ok() {
                self.transfers.is_not_written(&self.peer, self.key);
            }
        }
    }
}

/// Tells the task that writes a body, when this is dropped, that nobody waits for the body any
/// more.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The `WRITTEN` message that the receiver of a body waits for. If it was not sent by the time this
/// is dropped, it is sent then, and says that the body is incomplete.
struct WrittenNotice {
    transfers: Arc<Transfers>,
    peer: Peer,
    key: CallKey,
    is_told: bool,
}

impl WrittenNotice {
    /// Sends the message, which says whether the body is there as a whole.
    async fn tell(mut self, whole: bool) {
        self.is_told = true;
        send_written(&self.peer, self.key, whole).await;
    }
}

impl Drop for WrittenNotice {
    fn drop(&mut self) {
        if !self.is_told {
            self.transfers.is_not_written(&self.peer, self.key);
        }
    }
}
