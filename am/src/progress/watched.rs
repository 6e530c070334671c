//! The links and the endpoints of a bundle, as the task of `watching` finds them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use doorbell_verbs::floor::locked;

use crate::link::{Link, Owner};

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

    /// The link whose queue pair has this number.
    pub fn link(&self, number: u32) -> Option<Weak<Link>> {
        locked(&self.links).get(&number).cloned()
    }

    /// The endpoints that are open.
    pub fn owners(&self) -> Vec<Weak<dyn Owner>> {
        locked(&self.owners).values().cloned().collect()
    }

    /// Has the endpoint of a link look whether the link's connection has ended.
    pub fn check(&self, link: &Weak<Link>) {
        if let Some(link) = link.upgrade()
            && let Some(owner) = link.endpoint.owner.upgrade()
        {
            owner.check(&link);
        }
    }

    /// Has the endpoints of all links look whether the links' connections have ended.
    pub fn check_all(&self) {
        let links: Vec<_> = locked(&self.links).values().cloned().collect();
        links.iter().for_each(|link| self.check(link));
    }
}
