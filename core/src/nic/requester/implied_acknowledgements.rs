//! Implied acknowledgements: what the peer's program says that it received.
//!
//! Programs that answer each other know more than their NICs: an answer to a message says that the
//! message came, and no packet has to say it again. What is known in this way is acknowledged, and
//! since the work queue does not fill, no acknowledgement is asked for.

use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::{Psn, Service};

impl QueuePair {
    /// Takes the first `count` requests that were posted since the connection began for
    /// acknowledged, if they were sent. Nothing is done while packets are sent again, or if one of
    /// the requests is a read or an atomic operation, which only its response completes.
    pub fn acknowledged_by_program(&mut self, count: u32, common: &mut Common) {
        let (service, mtu) = (self.service(), self.mtu);
        let r = &mut self.requester;
        if common.lossless
            || service != Service::Rc
            || !self.state.requests()
            || r.next_psn != r.unsent_psn
        {
            return;
        }
        let count = count.wrapping_add(planted(Bug::ProvesOneMore).into());
        let more = Psn::new(count).distance_from(Psn::new(r.completed.get()));
        if !(1..=r.cursor as i32).contains(&more) {
            return;
        }
        let mut packets = 0;
        for posted in r.work.seen_range(0..more as usize) {
            if posted.needs_response() {
                return;
            }
            packets += mtu.packets(posted.len);
        }
        let Some(further) = packets.checked_sub(r.head_acknowledged + 1) else { return };
        let psn = r.oldest_psn.add(further);
        self.acknowledge_up_to(psn, common);
        let r = &mut self.requester;
        r.unasked = r.unasked.min(r.under_way());
    }
}
