//! Long messages of an endpoint, pulled by tasks.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;

use super::effects::Effects;
use super::shared::Shared;
use super::slots::{ReceiveSlot, Received};
use crate::error::{ReceiveError, peer_text};
use crate::pull::{Connections, NearProcess, PullError};
use crate::wire::Description;

impl Shared {
    /// Pulls the long body of a message, gives the message to its receive, and tells the sender.
    pub(super) fn pull(
        self: &Arc<Self>,
        ways: Option<Ways>,
        number: u64,
        slot: Arc<ReceiveSlot>,
        (len, description): (usize, Description),
        mut received: Received,
    ) {
        let (shared, name) = (self.clone(), peer_text(received.from.name.as_deref()));
        if let Some((pulls, None)) = &ways {
            self.connect_for_pulls(pulls);
        }
        let unfinished = Unfinished(slot);
        self.spawn(async move {
            let pulled = match ways {
                Some(ways) => shared.pull_by(ways, description, len).await,
                None => Err(PullError::PeerGone),
            };
            let pulled = pulled.map_err(|why| why.to_string());
            let mut effects = Effects::default();
            shared.lock().pulled(received.from.source, number, pulled.is_ok(), &mut effects);
            effects.finish();
            match pulled {
                Ok(body) => {
                    received.body = body;
                    shared.give(&unfinished.0, len, received);
                }
                Err(why) => {
                    let bits = received.bits;
                    let lost = ReceiveError::NotPulled { bits, len, peer: name, why };
                    unfinished.0.outcome.fill(Err(lost));
                }
            }
        });
    }

    /// Pulls a long body: by a copy if the sender's process may be read, and otherwise by reads
    /// over the connection for that.
    async fn pull_by(
        &self,
        (pulls, near): Ways,
        description: Description,
        len: usize,
    ) -> Result<Bytes, PullError> {
        if let Some(process) = near {
            let copied = self.puller.copy(&process, &description, len).await;
            // Another process may have the number of one that has ended, and was read instead.
            if !process.is_there() {
                return Err(PullError::PeerGone);
            }
            if copied.is_ok() {
                return copied;
            }
        }
        self.puller.pull(&pulls, &description, len).await
    }

    /// Has the connections made over which either side pulls, if this side makes them and they are
    /// not there.
    pub(super) fn connect_for_pulls(&self, pulls: &Connections) {
        for pulls in pulls.iter().flatten().filter(|pulls| pulls.is_to_be_made()) {
            let pulls = pulls.clone();
            self.spawn(async move {
                if let Err(why) = pulls.get().await {
                    tracing::debug!(%why, "a connection for long messages was not made");
                }
            });
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, self.bundle().runtime());
    }
}

/// The ways to a peer's memory: the connections for reads, and the peer's process if it may be
/// read.
type Ways = (Connections, Option<NearProcess>);

/// A receive whose message is being pulled. If the task ends early, the endpoint was closed.
struct Unfinished(Arc<ReceiveSlot>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The first outcome counts, so this is one only if there was none.
        self.0.outcome.fill(Err(ReceiveError::Closed));
    }
}
