//! Acknowledgements: what the peer has acknowledged, and what may go on by that.

use crate::nic::config::queue_pair_state::State;
use crate::nic::queues::completion_slots::in_use;
use crate::nic::requester::completing::complete_next;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::Psn;

impl QueuePair {
    /// Takes everything up to and with packet `psn`, which was sent, as received by the peer, and
    /// completes the requests that are complete. Reads and atomic operations are only complete when
    /// their responses have come: if one has not, it was lost, and is requested again.
    pub fn acknowledge_up_to(&mut self, psn: Psn, common: &mut Common) {
        if self.requester.is_repairing() {
            return self.acknowledge_repaired(psn, common);
        }
        let beyond = psn.add(1);
        let before = self.requester.oldest_psn;
        let (qpn, r) = (self.number(), &mut self.requester);
        let queue = in_use(&mut common.completions, self.send_completions);
        let (mtu, sent) = (self.mtu, beyond.distance_from(before).max(0) as u32);
        let (mut missing, mut left, mut of_head) = (false, sent, r.head_acknowledged);
        let (mut slots, mut work) = (queue.redeem_several(), r.work.read_batch(r.begun));
        while let Some(posted) = work.next() {
            if posted.written_locally.get() {
                // A write that was carried out here has no packets.
            } else if left == 0 {
                break;
            } else if posted.simple && posted.len <= mtu.bytes() as u32 {
                // Most requests are of this kind: one packet, which completes its request.
                left -= 1;
            } else {
                missing = posted.needs_response() && !planted(Bug::TakesReadsForAnswered);
                let rest = mtu.packets(posted.len) - of_head;
                if missing || left < rest {
                    break;
                }
                (left, of_head) = (left - rest, 0);
            }
            complete_next(posted, qpn, &mut slots);
        }
        // The order matters: a program that sees a completion finds the room that its request took.
        let (count, filled) = (work.finish(), slots.finish());
        queue.redeemed(count, filled);
        (r.oldest_psn, r.head_acknowledged) = match missing {
            true => (before.add(sent - left), of_head),
            false => (beyond, of_head + left),
        };
        r.count_completed(count);
        common.counters.completed += count as u64;
        if queue.needs_settling() {
            common.settle(self.send_completions);
        }
        if self.requester.oldest_psn != before {
            self.restart_response_timer(psn, common);
        }
        if missing && self.requester.selective {
            self.repair_responses(psn, common);
        } else if missing {
            self.request_missing_response(common);
        }
    }

    /// Goes on behind what was acknowledged or answered now, up to `psn`: moves the cursor if need
    /// be, learns the round trip, and sets the retransmission timer anew.
    pub fn restart_response_timer(&mut self, psn: Psn, common: &mut Common) {
        let r = &mut self.requester;
        if r.timeout_retry.is_some() {
            r.timeout_retry_answered(psn, self.state, self.mtu);
        }
        // What is to be sent again may be acknowledged before the cursor reaches it.
        if r.next_psn.distance_from(r.oldest_psn) < 0 {
            r.move_cursor(r.oldest_psn, self.mtu);
        }
        (r.rerequested, r.probes) = (None, 0);
        r.rto.take_sample(psn, common.now, &common.clock_jumps);
        // What came from the peer ends the wait that its RNR NAK asked for.
        r.resume_at = None;
        r.learn_from_progress(psn, common.now);
        let waits = r.under_way() > 0 && !common.lossless;
        r.retry_at = waits.then(|| common.now + r.first_timeout(common));
        (r.timer_set_at, r.last_progress) = (common.now, common.now);
        if let Some(at) = r.retry_at {
            self.arm_by(at, common);
        }
        self.continue_after_progress(common);
    }

    /// Lets whatever waited for an acknowledgement go on.
    pub(crate) fn continue_after_progress(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        (r.tries, r.rnr_tries) = (0, 0);
        r.reopen_window();
        if self.state == State::Draining && !self.requester.has_outstanding() {
            common.raise(Event::Drained(self.number()), &mut self.drained_pending);
        }
        // A request that is posted from now on rings the doorbell.
        if self.requester.at_cursor().1.is_some() {
            common.activate(self);
        }
    }

    /// Requests the oldest response again, once.
    #[cold]
    pub(crate) fn request_missing_response(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if r.rerequested == Some(r.oldest_psn) {
            return;
        }
        r.rerequested = Some(r.oldest_psn);
        common.counters.answers_missed += 1;
        if !self.retries_exhausted(common) {
            self.retransmit_from(self.requester.oldest_psn, common);
        }
    }
}
