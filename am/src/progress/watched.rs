//! The connections of a bundle, and the task that tells their endpoints when they end.
//!
//! One task does so for all endpoints of the bundle, however many there are, and finds the link of
//! a connection by the number of its queue pair.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use doorbell_verbs::AsyncEvent;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::engine::Engine;
use crate::link::{Link, Owner};
use crate::lock::locked;

/// The links and the endpoints of a bundle.
#[derive(Default)]
pub(crate) struct Watched {
    /// The links that are not over, by the numbers of their queue pairs.
    links: Mutex<HashMap<u32, Weak<Link>>>,
    /// The endpoints that are open, by their numbers.
    owners: Mutex<HashMap<usize, Weak<dyn Owner>>>,
}

impl Watched {
    pub fn add_link(&self, link: &Arc<Link>) {
        locked(&self.links).insert(link.qpn().get(), Arc::downgrade(link));
    }

    /// Removes a link that is over. Another one may have its number already.
    pub fn remove_link(&self, link: &Arc<Link>) {
        let (number, is) = (link.qpn().get(), Arc::as_ptr(link));
        let mut links = locked(&self.links);
        if links.get(&number).is_some_and(|there| there.as_ptr() == is) {
            links.remove(&number);
        }
    }

    pub fn add_owner(&self, number: usize, owner: Weak<dyn Owner>) {
        locked(&self.owners).insert(number, owner);
    }

    pub fn remove_owner(&self, number: usize) {
        locked(&self.owners).remove(&number);
    }

    /// Has the endpoint of a link look whether the link's connection has ended.
    fn check(&self, link: &Weak<Link>) {
        if let Some(link) = link.upgrade()
            && let Some(owner) = link.endpoint.owner.upgrade()
        {
            owner.check(&link);
        }
    }

    fn check_all(&self) {
        let links: Vec<_> = locked(&self.links).values().cloned().collect();
        links.iter().for_each(|link| self.check(link));
    }
}

/// Closes the endpoints of a bundle when the runtime ends that has run their tasks.
struct ClosesWithRuntime(Arc<Engine>);

impl Drop for ClosesWithRuntime {
    fn drop(&mut self) {
        let owners: Vec<_> = locked(&self.0.watched.owners).values().cloned().collect();
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
                    let link = locked(&engine.watched.links).get(&qpn.get()).cloned();
                    link.iter().for_each(|link| engine.watched.check(link));
                }
                // All messages of the link may be handled by now.
                Ok(AsyncEvent::LastReceive(_)) => engine.signals.stir(),
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
