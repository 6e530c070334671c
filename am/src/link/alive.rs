//! Probing a peer for signs of life while a task waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::floor::{Awaits, Prober, watch_over};

use super::Link;

impl Link {
    /// Counts a task that sleeps until the peer does something, and has the peer probed meanwhile.
    pub fn begin_sleep(self: &Arc<Self>) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        watch_over(self, &self.endpoint.nic, &self.endpoint.runtime);
    }

    /// Counts one sleeping task less.
    pub fn end_sleep(&self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Awaits for Link {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    fn is_waiting(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0 && self.ending().is_none()
    }

    fn probe(&self) {
        self.connection.probe();
    }
}
