//! The task that tells the endpoints of a bundle when their connections end.
//!
//! One task does so for all endpoints of the bundle, however many there are, and finds the link of
//! a connection by the number of its queue pair.

use std::sync::{Arc, Weak};

use doorbell_verbs::AsyncEvent;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::engine::Engine;

/// Closes the endpoints of a bundle when the runtime ends that has run their tasks.
struct ClosesWithRuntime(Arc<Engine>);

impl Drop for ClosesWithRuntime {
    fn drop(&mut self) {
        let owners = self.0.watched.owners();
        owners.iter().filter_map(Weak::upgrade).for_each(|owner| owner.close_with_runtime());
    }
}

/// Ends the links of a bundle when their connections end, for as long as the bundle lives.
pub(super) fn watch(
    engine: Arc<Engine>,
    mut events: Receiver<AsyncEvent>,
) -> impl Future<Output = ()> {
    // Made here, so that the task has it even if it never runs.
    let closes = ClosesWithRuntime(engine);
    async move {
        let engine = &closes.0;
        loop {
            match events.recv().await {
                Ok(AsyncEvent::Ended(qpn)) => {
                    let link = engine.watched.link(qpn.get());
                    link.iter().for_each(|link| engine.watched.check(link));
                }
                // All messages of the link may be handled by now.
                Ok(AsyncEvent::LastReceive(_)) => engine.signals.stir(),
                Ok(AsyncEvent::NicClosed) => {
                    let owners = engine.watched.owners();
                    owners.iter().filter_map(Weak::upgrade).for_each(|owner| owner.end_with_nic());
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    engine.watched.check_all();
                    engine.signals.stir();
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}
