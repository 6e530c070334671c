//! The task that probes the peers of streams that wait for an answer. How often a peer is probed is
//! up to the stream's [`Question`](crate::link::Link).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::serving::Hub;

/// The time between two ticks, at each of which the task looks which peers to probe.
const TICK: Duration = Duration::from_millis(500);

/// Starts the task unless it runs. To be called when a stream of the hub has begun to wait for an
/// answer.
#[inline]
pub(crate) fn probe_peers(hub: &Arc<Hub>) {
    if !hub.probes.load(Ordering::SeqCst) && !hub.probes.swap(true, Ordering::SeqCst) {
        hub.shared.runtime.spawn(probe(Arc::downgrade(hub)));
    }
}

/// Probes peers until no stream waits for an answer.
async fn probe(hub: Weak<Hub>) {
    loop {
        tokio::time::sleep(TICK).await;
        // The task holds the hub only between sleeps, so that it does not keep the NIC open.
        let Some(hub) = hub.upgrade() else { return };
        for link in hub.links() {
            if link.common.question.tick() == Some(true) {
                link.common.connection.probe();
            }
        }
        let waits = || hub.links().iter().any(|link| link.common.question.is_open());
        if waits() {
            continue;
        }
        hub.probes.store(false, Ordering::SeqCst);
        // A stream that was written to before the store above has seen that this task still runs.
        if !waits() || hub.probes.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}
