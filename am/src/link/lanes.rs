//! Several links to one peer, one for each size class of messages.

use std::sync::Arc;

use super::{Link, Siblings};
use crate::wire::{Content, Size};

impl Link {
    /// Has shorter messages to the same peer leave by other links from here on.
    pub fn set_lanes(self: &Arc<Self>, shorter: [Arc<Self>; 2]) {
        for lane in &shorter {
            lane.set_siblings(Siblings::Main(Arc::downgrade(self)));
        }
        let placing = tokio::sync::Mutex::default();
        self.set_siblings(Siblings::Lanes { shorter, placing });
    }

    fn set_siblings(&self, siblings: Siblings) {
        let _ = self.rare.get_or_init(Box::default).siblings.set(siblings);
    }

    #[inline]
    fn siblings_there(&self) -> Option<&Siblings> {
        self.rare.get()?.siblings.get()
    }

    /// Returns the links that end with this one.
    pub fn siblings(&self) -> Vec<Arc<Self>> {
        match self.siblings_there() {
            Some(Siblings::Lanes { shorter, .. }) => shorter.to_vec(),
            Some(Siblings::Main(main)) => main.upgrade().into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Returns whether the link is for shorter messages only, and another stands for the peer.
    pub fn is_for_shorter(&self) -> bool {
        Size::LESS.contains(&self.size)
    }

    /// Returns the links for shorter messages.
    pub fn lanes(&self) -> &[Arc<Self>] {
        match self.siblings_there() {
            Some(Siblings::Lanes { shorter, .. }) => shorter,
            _ => &[],
        }
    }

    /// Returns the link by which a request leaves: the first that takes messages of its size.
    #[inline]
    pub fn lane(self: &Arc<Self>, content: Content<'_>) -> &Arc<Self> {
        let takes = |lane: &&Arc<Self>| lane.check_takes(content).is_ok();
        self.lanes().iter().find(takes).unwrap_or(self)
    }

    /// Returns the lock that is held while a payload is placed by messages, if payloads are placed
    /// that way.
    pub fn placing_by_messages(&self) -> Option<&tokio::sync::Mutex<()>> {
        match self.siblings_there() {
            Some(Siblings::Lanes { placing, .. }) => Some(placing),
            _ => None,
        }
    }
}
