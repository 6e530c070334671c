//! Probing of servers from which calls wait for answers.
//!
//! While requests are unacknowledged, the NIC notices at once that a server has died. A server that
//! has acknowledged everything and then dies is noticed only when the connection has been idle for
//! long. So while calls wait for answers, or streams for their next message, a task probes the
//! servers in question every half second.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_am::Peer;

use super::calls::Calls;

/// The time between two probes of a server, and from a call to its first probe.
const EVERY: Duration = Duration::from_millis(500);

/// Starts the task that probes the servers of a channel's calls, unless it runs already. To be
/// called when a call over the connection to `peer` has been entered into `calls`.
#[inline]
pub fn watch_over(calls: &Arc<Calls>, peer: &Peer) {
    let runs = &calls.are_probed;
    if !runs.load(Ordering::SeqCst) && !runs.swap(true, Ordering::SeqCst) {
        peer.runtime().spawn(probe(Arc::downgrade(calls)));
    }
}

/// Probes the servers that calls wait for, until no call waits or the channel is dropped.
async fn probe(calls: Weak<Calls>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(calls) = calls.upgrade() else { return };
        if is_over(&calls) {
            return;
        }
        calls.peers().iter().for_each(Peer::probe);
    }
}

/// Returns whether the probing task ends: no call waits, and no other probing task has begun since
/// that was found.
fn is_over(calls: &Calls) -> bool {
    if !calls.peers().is_empty() {
        return false;
    }
    calls.are_probed.store(false, Ordering::SeqCst);
    calls.peers().is_empty() || calls.are_probed.swap(true, Ordering::SeqCst)
}
