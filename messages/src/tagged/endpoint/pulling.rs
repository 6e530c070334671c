//! Long messages of an endpoint, pulled by tasks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::arrived::{Pull, PullJob};
use super::effects::Effects;
use super::frame::Frame;
use super::shared::Shared;
use crate::matching::Source;
use crate::tagged::error::ReceiveError;
use crate::tagged::pull::{Connections, NearProcess, PullError, Pulled, Target};
use crate::tagged::wire::Description;
use doorbell_verbs::floor::locked;

/// The pause before another attempt to pull a body, which doubles from the first to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

impl Shared {
    /// Pulls the long body of a message, gives the message to its receive, and tells the sender.
    pub fn pull(self: &Arc<Self>, job: PullJob) {
        let PullJob { pull, source, number, len, description, mut target } = job;
        let unfinished = Unfinished { shared: self.clone(), pull };
        let shared = self.clone();
        if let Some((pulls, None)) = self.ways(source) {
            self.connect_for_pulls(&pulls);
        }
        self.spawn(async move {
            let (pulled, mut state) = loop {
                let into = target.take();
                let pulled = shared.pull_from(source, &description, len, into.as_ref()).await;
                let state = shared.lock();
                // A body in the memory of a receive that was dropped is nobody's: it is pulled again.
                if into.is_none_or(|target| !target.is_given_up()) {
                    break (pulled.map_err(|why| why.to_string()), state);
                }
            };
            let mut effects = Effects::default();
            state.pulled(source, number, pulled.is_ok(), &mut effects);
            if let Some((receive, met)) = unfinished.pull.ends(pulled) {
                state.meets(receive, met, &mut effects);
            }
            drop(state);
            shared.finish(effects);
        });
    }

    /// Pulls a long body: by a copy if the sender's process may be read, and otherwise by reads
    /// over the connections for that. As long as the sender is there, and has not refused to have
    /// the body read, attempts go on until none brings anything for the configured time.
    async fn pull_from(
        self: &Arc<Self>,
        source: Source,
        description: &Description,
        len: usize,
        target: Option<&Arc<Target>>,
    ) -> Result<Pulled, PullError> {
        if let Some((_, Some(process))) = self.ways(source) {
            let copied = self.puller.copy(&process, description, len, target).await;
            // Another process may have the number of one that has ended, and was read instead.
            if !process.is_there() {
                return Err(PullError::PeerGone);
            }
            if copied.as_ref().err().is_none_or(PullError::is_final) {
                return copied;
            }
        }
        let mut transfer = self.puller.begin(description.clone(), len, target);
        let (mut since, mut pause) = (Instant::now(), PAUSES.0);
        while let Some((pulls, _)) = self.ways(source) {
            self.ask_for_connections(source, &pulls);
            let left = transfer.left();
            let Err(why) = self.puller.go_on(&mut transfer, &pulls).await else {
                return transfer.into_body();
            };
            if transfer.left() < left {
                (since, pause) = (Instant::now(), PAUSES.0);
            }
            if why.is_final() || since.elapsed() >= self.puller.patience() {
                return Err(why);
            }
            tracing::debug!(%why, "a long message is pulled by another attempt");
            sleep(pause).await;
            pause = PAUSES.1.min(2 * pause);
        }
        Err(PullError::PeerGone)
    }

    /// Returns the ways to a peer's memory, unless the peer has gone.
    fn ways(&self, source: Source) -> Option<Ways> {
        let state = self.lock();
        state.peers.get(source).map(|known| (known.pulls.clone(), known.near.clone()))
    }

    /// Asks a peer to make the connections over which this side pulls, where that is the peer's to
    /// do and they are not there: the peer may not know that they have ended.
    fn ask_for_connections(self: &Arc<Self>, source: Source, pulls: &Connections) {
        let all = pulls.iter().enumerate();
        let missing = all.filter(|(_, pulls)| pulls.as_ref().is_some_and(|of| of.is_missing()));
        let frames: Vec<_> = missing.map(|(device, _)| Frame::Connect(device)).collect();
        if frames.is_empty() {
            return;
        }
        let mut effects = Effects::default();
        if let Some(known) = self.lock().peers.get(source) {
            known.lane.put(frames);
            effects.send(&known.lane);
        }
        effects.finish();
    }

    /// Makes a connection over which a peer pulls that says that there is none.
    pub(super) fn connects_again(self: &Arc<Self>, source: Source, device: u64) {
        let Some((pulls, _)) = self.ways(source) else { return };
        let place = usize::try_from(device).ok();
        let asked = place.and_then(|place| pulls.get(place)).and_then(Option::as_ref);
        let Some(asked) = asked else { return };
        asked.has_ended();
        self.connect_for_pulls(&vec![Some(asked.clone())]);
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
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, self.bundle().runtime());
    }
}

/// The ways to a peer's memory: the connections for reads, and the peer's process if it may be
/// read.
type Ways = (Connections, Option<NearProcess>);

/// A body that is being pulled. If the task ends early, the endpoint was closed.
struct Unfinished {
    shared: Arc<Shared>,
    pull: Arc<Pull>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(receive) = self.pull.is_given_up() {
            self.shared.fails([receive], || ReceiveError::Closed);
        }
    }
}
