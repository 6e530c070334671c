//! Probing peers for signs of life while something is awaited of them.
//!
//! A NIC expects nothing of a peer that has acknowledged all that was sent. If such a peer dies,
//! the NIC notices only once the connection has been idle for long. So a task asks peers for signs
//! of life for as long as their programs are to do something: to answer, to read, to grant room. A
//! device that loses nothing reports the ends of peers by itself, and needs no such task.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::nic::Nic;
use crate::sync::single_task::SingleTask;

/// The time between two probes of a peer, and from the beginning of a wait to the first.
const EVERY: Duration = Duration::from_millis(500);

/// The task that probes peers while something is awaited of them, if it runs.
#[derive(Debug)]
pub struct Prober(SingleTask);

/// Something whose program waits for what peers do.
pub trait Awaits: Send + Sync + 'static {
    /// Returns the task that probes the peers.
    fn prober(&self) -> &Prober;

    /// Returns whether anything is awaited of any peer.
    fn is_waiting(&self) -> bool;

    /// [Probes](crate::Connection::probe) the peers that something is awaited of.
    fn probe(&self);
}

impl Default for Prober {
    fn default() -> Self {
        Self(SingleTask::new())
    }
}

/// Has peers probed for as long as something is awaited of them. To be called when that has begun.
#[inline]
pub fn watch_over<A: Awaits>(awaits: &Arc<A>, nic: &Nic, runtime: &Handle) {
    if !nic.capabilities().lossless && awaits.prober().0.is_to_begin() {
        begin(awaits, runtime);
    }
}

#[cold]
fn begin<A: Awaits>(awaits: &Arc<A>, runtime: &Handle) {
    // The task holds what awaits only between sleeps, so that it keeps no NIC open.
    let awaits = Arc::downgrade(awaits);
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(awaits) = awaits.upgrade() else { return };
            if awaits.prober().0.is_to_end(|| awaits.is_waiting()) {
                return;
            }
            awaits.probe();
        }
    });
}
