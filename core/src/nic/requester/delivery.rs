//! Delivery: what a lossless device reports as delivered to the peer, and what it reports as
//! failed.

use crate::encap::PathId;
use crate::nic::device::outbox::Outbox;
use crate::nic::queues::completion_slots::in_use;
use crate::nic::requester::completing::complete_next;
use crate::nic::state::common::Common;
use crate::nic::state::delivery_failures::FailedDelivery;
use crate::nic::state::queue_pair::QueuePair;

impl QueuePair {
    /// The last ticket that a lossless device reports as delivered.
    #[inline]
    pub fn delivered_ticket<O: Outbox>(&self, outbox: &mut O) -> u64 {
        self.path.as_ref().map_or(0, |path| outbox.delivered(path.id()))
    }

    /// Completes the requests of which all packets up to ticket `delivered` consist. Returns
    /// whether anything is still under way.
    pub fn collect(&mut self, delivered: u64, common: &mut Common) -> bool {
        if !self.state.requests() {
            // A broken queue pair's requests are flushed, whatever was delivered of them.
            self.requester.awaits_delivery = false;
            return false;
        }
        let count = self.complete_delivered(delivered, common);
        let marked =
            self.requester.mid_message_ticket.is_some() && self.acknowledge_mid_message(delivered);
        if count > 0 || marked {
            self.continue_after_progress(common);
        }
        self.requester.awaits_delivery = self.requester.has_outstanding() && self.state.requests();
        self.requester.awaits_delivery
    }

    /// Completes the requests at the head whose last packet was `delivered`. Returns how many.
    #[inline(always)]
    pub(crate) fn complete_delivered(&mut self, delivered: u64, common: &mut Common) -> usize {
        let (qpn, r) = (self.number(), &mut self.requester);
        let queue = in_use(&mut common.completions, self.send_completions);
        let mut oldest = r.oldest_psn;
        // A request was delivered when its last packet was. All requests before the cursor were
        // sent.
        let (mut slots, mut work) = (queue.redeem_several(), r.work.read_batch(r.cursor));
        while let Some(posted) = work.next()
            && posted.ticket.get() <= delivered
            && !posted.needs_response()
        {
            oldest = posted.psn_beyond.get();
            complete_next(posted, qpn, &mut slots);
        }
        // The order matters: a program that sees a completion finds the room that its request took.
        let (count, filled) = (work.finish(), slots.finish());
        queue.redeemed(count, filled);
        if count > 0 {
            (r.oldest_psn, r.head_acknowledged) = (oldest, 0);
            r.count_completed(count);
            common.counters.completed += count as u64;
        }
        if queue.needs_settling() {
            common.settle(self.send_completions);
        }
        count
    }

    /// Acknowledges the packet in the middle of a message whose ticket is waited for, if it was
    /// delivered and no response has acknowledged it before. Returns whether it was acknowledged.
    #[inline(never)]
    fn acknowledge_mid_message(&mut self, delivered: u64) -> bool {
        let r = &mut self.requester;
        // AfterBth a request that is not answered, the packet has to wait.
        if r.head_needs_response() {
            return false;
        }
        let Some((_, psn)) = r.mid_message_ticket.take_if(|(ticket, _)| ticket.get() <= delivered)
        else {
            return false;
        };
        if !self.is_under_way(psn) {
            return false;
        }
        let r = &mut self.requester;
        // The messages before the packet are complete, so it belongs to the one at the head.
        let beyond = psn.add(1);
        r.head_acknowledged += beyond.distance_from(r.oldest_psn) as u32;
        r.oldest_psn = beyond;
        true
    }

    /// Whether the queue pair has packets under way by a link, and a delivery failure notice that
    /// came by the link is about one of them.
    pub(crate) fn has_failed_delivery(&self, link: PathId, failed: FailedDelivery) -> bool {
        let oldest = self.oldest_psn();
        let waits = self.state.requests() && self.is_under_way(oldest);
        let by_link = self.path.as_ref().is_some_and(|path| path.id() == link);
        waits
            && by_link
            && match failed {
                FailedDelivery::Anything => true,
                // The failed packets and those under way overlap if the first of either is among
                // the other.
                FailedDelivery::Run { number, first, last } => {
                    let within =
                        oldest.distance_from(first) >= 0 && last.distance_from(oldest) >= 0;
                    number == self.peer_qpn && (self.is_under_way(first) || within)
                }
            }
    }
}
