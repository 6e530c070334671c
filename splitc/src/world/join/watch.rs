//! Watching for the ends of other processes.

use std::collections::HashMap;
use std::sync::Arc;

use doorbell_am::{self as am, Endpoint, Event};
use tokio::sync::broadcast::error::RecvError;

use crate::departures::{Departures, told};

/// A future that notes the ends of other processes, until the endpoint is closed.
pub(super) fn watch(
    endpoint: &Endpoint,
    messages: &HashMap<usize, am::Peer>,
    departures: Arc<Departures>,
) -> impl Future<Output = ()> + Send + 'static {
    let mut events = endpoint.events();
    let peers: Vec<_> = messages.iter().map(|(rank, peer)| (*rank, peer.clone())).collect();
    let look = move |departures: &Departures| {
        for (rank, peer) in &peers {
            if let Some(ending) = peer.departed() {
                departures.note(*rank, &told(&ending));
            }
        }
    };
    async move {
        loop {
            look(&departures);
            match events.recv().await {
                Ok(Event::Gone(..) | Event::Overrun(_)) | Err(RecvError::Lagged(_)) => {}
                Ok(_) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}
