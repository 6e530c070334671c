//! A device that cannot lose: what it says was delivered.

use crate::nic::common::{Common, in_use};
use crate::nic::device::Outbox;
use crate::nic::pair::QueuePair;

impl QueuePair {
    /// Notes what a lossless device says was delivered.
    pub fn look<O: Outbox>(&mut self, outbox: &mut O) {
        if let Some(path) = &self.path {
            self.requester.delivered = outbox.delivered(path.id());
        }
    }

    /// Completes what was delivered. Whether anything is still under way.
    pub fn collect(&mut self, common: &mut Common) -> bool {
        if !self.state.requests() {
            // What is broken is flushed, whatever was delivered of it.
            self.requester.flying = false;
            return false;
        }
        let delivered = self.requester.delivered;
        // A request is there when its last packet is, and that was sent.
        let before = self.requester.completed;
        let queue = in_use(&mut common.completions, self.send_completions);
        while let r = &mut self.requester
            && r.at > 0
            && let (ticket, beyond) = r.tickets[r.slot(0)]
            && ticket <= delivered
            && !r.asks_first()
        {
            (r.oldest, r.acknowledged) = (beyond, 0);
            self.complete_next(queue, &mut common.counters);
        }
        if queue.calls() {
            common.settle(self.send_completions);
        }
        let r = &mut self.requester;
        // Behind a request that is not answered, only that of a message which is complete is taken
        // away: it would keep those that come from being marked.
        let mut mark = None;
        if r.mark.is_some_and(|(ticket, _)| ticket <= delivered) {
            let (asks, oldest) = (r.asks_first(), r.oldest);
            mark = r.mark.take_if(|(_, psn)| !asks || psn.distance_from(oldest) < 0);
        }
        if let Some((_, psn)) = mark.filter(|(_, psn)| self.is_under_way(*psn)) {
            // The messages before it are complete, so it is of the one at the head.
            let r = &mut self.requester;
            let beyond = psn.add(1);
            r.acknowledged += beyond.distance_from(r.oldest) as u32;
            r.oldest = beyond;
        }
        if self.requester.completed != before || mark.is_some() {
            self.progressed(common);
        }
        self.requester.flying = self.requester.waits() && self.state.requests();
        self.requester.flying
    }
}
