//! Whether the server is alive for which calls wait.
//!
//! A NIC does not wait for anything of a server that has acknowledged all that was sent. If such a
//! server dies, the NIC notices only when the connection has been idle for long. So the server is
//! asked for a sign of life while calls wait for answers, or streams for what follows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_am::Peer;

use super::calls::Calls;

/// How long a call waits before its server is asked for a sign of life, and between questions.
const EVERY: Duration = Duration::from_millis(500);

/// Whether a task asks the servers of a channel's calls for signs of life.
#[derive(Debug, Default)]
pub struct Prober {
    runs: AtomicBool,
}

impl Prober {
    /// Starts the task if it does not run: a call over a connection to `peer` is on the table.
    #[inline]
    pub fn begins(&self, calls: &Arc<Calls>, peer: &Peer) {
        if !self.runs.load(Ordering::SeqCst) && !self.runs.swap(true, Ordering::SeqCst) {
            peer.runtime().spawn(probe(Arc::downgrade(calls)));
        }
    }

    /// Whether the task ends: no call waits, and no other such task has begun.
    fn ends(&self, calls: &Calls) -> bool {
        if !calls.peers().is_empty() {
            return false;
        }
        self.runs.store(false, Ordering::SeqCst);
        calls.peers().is_empty() || self.runs.swap(true, Ordering::SeqCst)
    }
}

/// Asks servers for signs of life for as long as calls wait for them.
async fn probe(calls: Weak<Calls>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(calls) = calls.upgrade() else { return };
        if calls.prober.ends(&calls) {
            return;
        }
        calls.peers().iter().for_each(Peer::probe);
    }
}
