//! Packets under way that a lossless device's peer did not take.

use crate::encap::PathId;
use crate::nic::state::delivery_failures::FailedDelivery;
use crate::nic::state::queue_pair::QueuePair;

impl QueuePair {
    /// Whether it has packets under way by a link, and the notice that came by it is about one.
    pub(crate) fn has_failed_delivery(&self, link: PathId, untaken: FailedDelivery) -> bool {
        let oldest = self.oldest_psn();
        let waits = self.state.requests() && self.is_under_way(oldest);
        let by_link = self.path.as_ref().is_some_and(|path| path.id() == link);
        waits
            && by_link
            && match untaken {
                FailedDelivery::Anything => true,
                // The one begins within the other, or the other within the one.
                FailedDelivery::Run { number, first, last } => {
                    let within =
                        oldest.distance_from(first) >= 0 && last.distance_from(oldest) >= 0;
                    number == self.peer_qpn && (self.is_under_way(first) || within)
                }
            }
    }
}
