//! Full links: the links of a lossless device that had no room for a packet in this turn.

use std::collections::VecDeque;

use crate::encap::PathId;

/// The links that were found full in this turn, and the queue pairs that wait for them.
#[derive(Default)]
pub(crate) struct FullLinks {
    links: Vec<PathId>,
    /// Places of queue pairs that had something to send, and were not tried because their link is
    /// full.
    pub aside: VecDeque<u32>,
    /// Places of queue pairs whose link was found full while they sent.
    pub stopped: Vec<u32>,
}

impl FullLinks {
    #[inline]
    pub fn any(&self) -> bool {
        !self.links.is_empty()
    }

    pub fn has(&self, link: PathId) -> bool {
        self.links.contains(&link)
    }

    pub fn add(&mut self, link: PathId) {
        if !self.has(link) {
            self.links.push(link);
        }
    }

    pub fn forget(&mut self) {
        self.links.clear();
    }
}
