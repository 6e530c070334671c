//! Probing a peer for signs of life while a task waits for it.
//!
//! A NIC expects nothing of a peer that has acknowledged all that was sent. If such a peer dies,
//! the NIC notices only once the connection has been idle for long. So the peer is asked for a sign
//! of life while a task sleeps until it answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Link;

/// The time between two requests for a sign of life, and before the first.
const EVERY: Duration = Duration::from_millis(500);

impl Link {
    /// Counts a task that sleeps until the peer does something, and has the peer probed meanwhile.
    pub fn begin_sleep(self: &Arc<Self>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // A device that loses nothing reports the peer's end by itself.
        if !self.endpoint.nic.capabilities().lossless
            && !self.probing.load(Ordering::SeqCst)
            && !self.probing.swap(true, Ordering::SeqCst)
        {
            self.endpoint.runtime.spawn(probe(self.clone()));
        }
    }

    /// Counts one sleeping task less.
    pub fn end_sleep(&self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns whether the probing task is to end: no task sleeps, and no other probing task has
    /// begun.
    fn ends_probing(&self) -> bool {
        let nobody = || self.sleepers.load(Ordering::SeqCst) == 0 || self.ending().is_some();
        if !nobody() {
            return false;
        }
        self.probing.store(false, Ordering::SeqCst);
        nobody() || self.probing.swap(true, Ordering::SeqCst)
    }
}

/// Asks a peer for signs of life for as long as a task sleeps until it does something.
async fn probe(link: Arc<Link>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if link.ends_probing() {
            return;
        }
        link.connection.probe();
    }
}
