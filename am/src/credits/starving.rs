//! Links that have credits, and no receive for an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_verbs::floor::locked;

/// The links of an endpoint, of type `L`, that may not send for want of a receive for the answer.
pub(crate) struct Starving<L> {
    links: Mutex<Vec<Arc<L>>>,
    any: AtomicBool,
}

impl<L> Default for Starving<L> {
    fn default() -> Self {
        Self { links: Mutex::default(), any: AtomicBool::new(false) }
    }
}

impl<L> Starving<L> {
    /// Adds a link, once.
    pub fn add(&self, link: Arc<L>) {
        let mut links = locked(&self.links);
        if !links.iter().any(|there| Arc::ptr_eq(there, &link)) {
            links.push(link);
        }
        drop(links);
        self.any.store(true, Ordering::SeqCst);
    }

    /// Returns whether any link starves.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes all links off the list, since receives have become free. Each is to try again.
    pub fn take(&self) -> Vec<Arc<L>> {
        match self.any.swap(false, Ordering::SeqCst) {
            true => std::mem::take(&mut *locked(&self.links)),
            false => Vec::new(),
        }
    }

    /// Drops the list, and with it what the links keep alive.
    pub fn clear(&self) {
        let links = std::mem::take(&mut *locked(&self.links));
        drop(links);
    }
}
