//! Whether the peer is alive for which somebody waits.
//!
//! A NIC does not wait for anything of a peer that has acknowledged all that was sent. If such a
//! peer dies, the NIC notices only when the connection has been idle for long. So the peer is asked
//! for a sign of life while somebody waits for its answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Link;

/// How long somebody waits before the peer is asked for a sign of life, and after that again and
/// again.
const EVERY: Duration = Duration::from_millis(500);

impl Link {
    /// Counts one more that waits for the peer, and starts the task that probes the peer if none
    /// runs.
    pub fn begins_to_wait(self: &Arc<Self>) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // A device that loses nothing tells of the peer's end by itself.
        if !self.endpoint.shared.nic.capabilities().lossless
            && !self.probed.load(Ordering::SeqCst)
            && !self.probed.swap(true, Ordering::SeqCst)
        {
            self.endpoint.shared.runtime.spawn(probe(self.clone()));
        }
    }

    /// Counts one fewer that waits for the peer.
    pub fn ends_to_wait(&self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether the task that probes the peer ends: nobody waits for it, and no other such task has
    /// begun.
    fn ends_to_be_probed(&self) -> bool {
        let nobody = || self.waiters.load(Ordering::SeqCst) == 0 || self.ending().is_some();
        if !nobody() {
            return false;
        }
        self.probed.store(false, Ordering::SeqCst);
        nobody() || self.probed.swap(true, Ordering::SeqCst)
    }
}

/// Asks a peer for signs of life for as long as somebody waits for it.
async fn probe(link: Arc<Link>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if link.ends_to_be_probed() {
            return;
        }
        link.connection.probe();
    }
}
