//! Long messages of an endpoint, pulled by tasks.

use std::sync::{Arc, PoisonError};

use super::peer::Peer;
use super::receive::ReceiveSlot;
use super::shared::Shared;
use super::state::Touched;
use crate::error::{ReceiveError, peer_text};
use crate::matching::Source;
use crate::pull::PullConnection;
use crate::wire::Description;

impl Shared {
    /// Pulls a long body, gives it to its receive, and tells the sender.
    pub(super) fn pull(
        self: &Arc<Self>,
        pulls: Option<Arc<PullConnection>>,
        (source, number): (Source, u64),
        slot: Arc<ReceiveSlot>,
        (bits, len, description): (u64, usize, Description),
        from: Peer,
    ) {
        let (shared, name) = (self.clone(), peer_text(from.name()));
        let unfinished = Unfinished(slot);
        self.spawn(async move {
            let pulled = match pulls {
                Some(pulls) => {
                    let pulled = shared.puller.pull(&pulls, description, len).await;
                    pulled.map_err(|why| why.to_string())
                }
                None => Err("its sender has gone".to_owned()),
            };
            let mut touched = Touched::new();
            shared.lock().is_done(source, number, pulled.is_ok(), &mut touched);
            touched.iter().for_each(|lane| lane.flush());
            match pulled {
                Ok(body) => unfinished.0.give(bits, len, body, from),
                Err(why) => {
                    let lost = ReceiveError::NotPulled { bits, len, peer: name, why };
                    unfinished.0.outcome.fill(Err(lost));
                }
            }
        });
    }

    /// Has the connection made by which a peer pulls, if this side makes it.
    pub(super) fn connect_for_pulls(&self, pulls: Option<Arc<PullConnection>>) {
        if let Some(pulls) = pulls.filter(|pulls| pulls.is_made_here()) {
            self.spawn(async move {
                if let Err(why) = pulls.get().await {
                    tracing::debug!(%why, "the connection for long messages was not made");
                }
            });
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, self.bundle.runtime());
    }
}

/// A receive whose message is being pulled. If the task ends early, the endpoint was closed.
struct Unfinished(Arc<ReceiveSlot>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The first outcome counts, so this is one only if there was none.
        self.0.outcome.fill(Err(ReceiveError::Closed));
    }
}
