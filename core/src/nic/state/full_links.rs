//! The links of a lossless device that are full.

use std::collections::VecDeque;

use crate::encap::PathId;

/// The links that were found full in this turn, and who waits for them.
#[derive(Default)]
pub(crate) struct FullLinks {
    links: Vec<PathId>,
    /// Places of queue pairs that had something to send, and were not tried, or stopped.
    pub aside: VecDeque<u32>,
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
