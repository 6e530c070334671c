//! What the peer has acknowledged, and what may go on by that.

use crate::nic::config::state::State;
use crate::nic::queues::completions::in_use;
use crate::nic::requester::completing::complete_next;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::Psn;

impl QueuePair {
    /// Takes everything up to and with `psn` as received by the peer, and completes what is
    /// complete. It must be a packet that was sent. Reads and atomic operations are only complete
    /// when they are answered: if one is not, its answer was lost, and it is asked for again.
    pub fn acknowledged(&mut self, psn: Psn, common: &mut Common) {
        let beyond = psn.add(1);
        let before = self.requester.oldest;
        let (qpn, r) = (self.number(), &mut self.requester);
        let queue = in_use(&mut common.completions, self.send_completions);
        let (mtu, sent) = (self.mtu, beyond.distance_from(before).max(0) as u32);
        let (mut missing, mut left, mut of_head) = (false, sent, r.acknowledged);
        let (mut slots, mut work) = (queue.redeem_several(), r.work.passing(r.begun));
        while let Some(posted) = work.next() {
            if posted.placed.get() {
                // It has no packets.
            } else if left == 0 {
                break;
            } else if posted.told && posted.len <= mtu.bytes() as u32 {
                // What most are, and never begun before.
                left -= 1;
            } else {
                missing = posted.asks() && !planted(Bug::TakesReadsForAnswered);
                let rest = mtu.packets(posted.len) - of_head;
                if missing || left < rest {
                    break;
                }
                (left, of_head) = (left - rest, 0);
            }
            complete_next(posted, qpn, &mut slots);
        }
        // In this order: who sees a completion finds the room that its request took.
        let (count, filled) = (work.leave(), slots.hand_over());
        queue.redeemed(count, filled);
        (r.oldest, r.acknowledged) = match missing {
            true => (before.add(sent - left), of_head),
            false => (beyond, of_head + left),
        };
        r.passed(count);
        common.counters.completed += count as u64;
        if queue.calls() {
            common.settle(self.send_completions);
        }
        if self.requester.oldest != before {
            self.moved(psn, common);
        }
        if missing {
            self.chase(common);
        }
    }

    /// Goes on behind what is acknowledged or answered now, up to `psn`.
    pub fn moved(&mut self, psn: Psn, common: &mut Common) {
        let r = &mut self.requester;
        if r.probe.is_some() {
            r.probed(psn, self.state, self.mtu);
        }
        // What is sent again may be acknowledged before it is reached.
        if r.next.distance_from(r.oldest) < 0 {
            r.seek(r.oldest, self.mtu);
        }
        r.chased = None;
        r.rto.acknowledged(psn, common.now, &common.leaps);
        // What came from the peer ends the wait that it asked for.
        r.resume_at = None;
        let waits = r.under_way() > 0 && !common.lossless;
        r.retry_at = waits.then(|| common.now + r.patience(common));
        (r.watched, r.since) = (common.now, common.now);
        if let Some(at) = r.retry_at {
            self.arm_by(at, common);
        }
        self.progressed(common);
    }

    /// The peer has taken something: whatever waited for that may go on.
    pub(crate) fn progressed(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        (r.tries, r.rnr_tries) = (0, 0);
        r.open = r.insists.window.min(r.open * 2);
        if self.state == State::Draining && !self.requester.waits() {
            common.tell(Event::Drained(self.number()), &mut self.told_drained);
        }
        // What is posted from now on rings.
        if self.requester.at_cursor().1.is_some() {
            common.activate(self);
        }
    }

    /// Asks again for the oldest answer, once.
    #[cold]
    pub(crate) fn chase(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if r.chased == Some(r.oldest) {
            return;
        }
        r.chased = Some(r.oldest);
        common.counters.answers_missed += 1;
        if !self.gave_up(common) {
            self.go_back(self.requester.oldest, common);
        }
    }
}
