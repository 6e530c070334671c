//! Receives that rest while the endpoint is idle: see [`Buffers`](crate::receives::Buffers).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Core;

impl Core {
    /// Has the receives rest, if no request has come or gone since this was called before. Returns
    /// whether they do.
    pub(super) fn rest_if_idle(&self) -> bool {
        let add = |all: u32, more| all.wrapping_add(more);
        let requests = self.links().iter().map(|link| link.requests()).fold(0, add);
        if self.requests_at_mark.swap(requests, Ordering::Relaxed) != requests {
            return false;
        }
        let mut given_up = 0;
        let rests = self.engine.between_messages(|| {
            self.buffers.rest();
            let links = self.links_that(|link| Arc::ptr_eq(&link.buffers, &self.buffers));
            given_up = links.iter().map(|link| link.rest()).sum();
        });
        if rests {
            self.buffers.give_back(given_up);
        }
        rests
    }
}
