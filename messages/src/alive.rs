//! Asking peers for signs of life while something is awaited of them.
//!
//! A NIC expects nothing of a peer that has acknowledged all that was sent, and so notices late
//! that such a peer has died. A receive, a message that the peer has no room for, and a stream that
//! goes on wait for what the peer's program does next. So the peer's NIC is asked for a sign of
//! life meanwhile, and the connection ends without one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use doorbell_am as am;
use tokio::task::AbortHandle;

/// The time between two requests for a sign of life, and before the first.
const EVERY: Duration = Duration::from_millis(500);

/// An endpoint whose programs wait for something of peers.
pub trait Waits: Send + Sync + 'static {
    /// Returns the connections to the peers that something is awaited of.
    fn awaited(&self) -> Vec<am::Peer>;
}

/// Has peers probed for as long as something is awaited of them, and the endpoint is there. A
/// device that loses nothing reports the ends of peers by itself, and needs no task for that.
pub fn watch_over<W: Waits>(waits: &Arc<W>, bundle: &am::Bundle) -> Option<AbortHandle> {
    if bundle.nic().capabilities().lossless {
        return None;
    }
    let probes = probe(Arc::downgrade(waits));
    Some(bundle.runtime().spawn(probes).abort_handle())
}

async fn probe<W: Waits>(waits: Weak<W>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(waits) = waits.upgrade() else { return };
        waits.awaited().iter().for_each(am::Peer::probe);
    }
}
