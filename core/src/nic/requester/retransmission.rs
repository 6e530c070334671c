//! Retransmission: what is sent again, and when.

use std::time::Duration;

use crate::nic::config::state::State;
use crate::nic::keep_alive::limits::{LEAST_ASKED, Silence};
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::requester::{Insistence, Requester};
use crate::planted::{Bug, planted};
use crate::wire::{PathMtu, Psn, RnrTimer};

/// The longest time between two tries, unless the path takes longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

impl Requester {
    /// What was sent again after a time-out is answered. If the peer has more than that, it was
    /// slow, and nothing lost (as RFC 5682 has it of TCP): it goes on where it was. If something
    /// was after all, what is sent now will be refused; where nothing may be sent, that is not
    /// waited for.
    #[cold]
    pub fn probed(&mut self, psn: Psn, state: State, mtu: PathMtu) {
        let Some((probe, open)) = self.probe.take() else { return };
        let back = self.next;
        if psn.distance_from(probe) > 0 && state != State::Draining {
            self.seek(self.top, mtu);
            if self.may_go_on() {
                self.open = open;
                return;
            }
            self.seek(back, mtu);
        }
        // What comes behind it is sent again, too.
        self.rto.abandon();
    }

    /// Whether the time-out that has passed began before what it is for was sent, since the clock
    /// was not read between: then it begins anew when it was.
    #[cold]
    fn was_watched_too_early(&mut self, common: &Common) -> bool {
        let from = common.leaps.latest(self.watched);
        if from == self.watched {
            return false;
        }
        let at = from + self.patience(common);
        self.since = common.leaps.latest(self.since);
        (self.watched, self.retry_at) = (from, Some(at));
        at > common.now
    }

    /// Whether there is something at the cursor, and neither waits for what is under way nor for
    /// the peer's receives.
    fn may_go_on(&mut self) -> bool {
        let (asking, most) = (self.asking, u32::from(self.insists.reads));
        let Some(posted) = self.work.peek(self.at) else { return false };
        let request = &posted.request;
        let waits = request.fenced && asking > 0 || posted.asks() && asking >= most;
        let needs_receive = request.takes_receive() && self.packet == 0;
        !(waits || needs_receive && self.is_out_of_receives())
    }
}

impl QueuePair {
    /// Sends again from `psn` on.
    pub fn go_back(&mut self, psn: Psn, common: &mut Common) {
        let (from, _) = self.requester.place_of(psn, self.mtu);
        if self.requester.has_copied(from) {
            return self.break_with(Cause::NotKept, Blamed::Request(from), common);
        }
        self.return_to(psn, common);
        self.requester.rto.abandon();
    }

    fn return_to(&mut self, psn: Psn, common: &mut Common) {
        if planted(Bug::GoesBackToTheNewest) {
            return self.requester.seek(self.requester.top, self.mtu);
        }
        self.requester.seek(psn, self.mtu);
        common.activate(self);
    }

    /// Sends the oldest packet again. It asks whether the peer is there, and what it has: to send
    /// all of the window again at once would often be for nothing.
    fn send_oldest_again(&mut self, common: &mut Common) {
        let oldest = self.requester.oldest;
        let open = self.requester.probe.map_or(self.requester.open, |(_, before)| before);
        self.return_to(oldest, common);
        self.requester.open = 1;
        self.requester.probe = Some((oldest, open));
        self.requester.rto.sent_again(oldest);
    }

    /// The request that a packet is of, which need not be the first that is unfinished: answers to
    /// reads and atomic operations before it may have been lost.
    pub fn request_of(&mut self, psn: Psn) -> Blamed {
        Blamed::Request(self.requester.place_of(psn, self.mtu).0)
    }

    /// Counts a try that failed. Whether it was the last: the tries are used up, and the patience
    /// is over, which counts from when the peer last took something. What comes from the peer
    /// meanwhile, and acknowledges nothing that is under way, does not prolong it: a peer that
    /// lives and takes nothing would be waited for without end.
    pub fn gave_up(&mut self, common: &mut Common) -> bool {
        let r = &mut self.requester;
        let (tries, Insistence { retries, patience, .. }) = (r.tries, &r.insists);
        let patience = Duration::from_nanos(*patience);
        let patient = common.now < common.leaps.end_of(patience, r.since);
        r.tries = tries.saturating_add(1);
        if tries < *retries || patient {
            return false;
        }
        // Whether something has come since the last try.
        let cause = match self.heard > r.watched {
            true => Cause::NoProgress { tries: r.tries },
            false => Cause::NoAnswer { tries: r.tries },
        };
        self.break_with(cause, Blamed::Request(0), common);
        true
    }

    /// Waits as a peer without receives asked for, unless that was once too often.
    pub fn wait_for_receiver(&mut self, psn: Psn, wait: RnrTimer, common: &mut Common) {
        let r = &mut self.requester;
        let (from, _) = r.place_of(psn, self.mtu);
        let patient = r.insists.rnr_retries >= 7 || r.rnr_tries < r.insists.rnr_retries;
        // All that is not acknowledged is sent again.
        if !patient || r.has_copied(0) {
            let cause = Cause::ReceiverNotReady { tries: r.rnr_tries.saturating_add(1), wait };
            return self.break_with(cause, Blamed::Request(from), common);
        }
        r.rnr_tries = r.rnr_tries.saturating_add(1);
        // It is a refusal, but an answer: the peer is there.
        r.tries = 0;
        r.rto.answered();
        let at = common.now + wait.delay();
        (r.resume_at, r.retry_at) = (Some(at), None);
        // Which is where it was refused, unless answers from before are missing.
        self.go_back(self.requester.oldest, common);
        self.arm_by(at, common);
    }

    pub fn requester_expire(&mut self, common: &mut Common) {
        if self.requester.resume_at.is_some_and(|at| at <= common.now) {
            self.requester.resume_at = None;
            common.activate(self);
        }
        if self.requester.retry_at.is_some_and(|at| at <= common.now)
            && !self.requester.was_watched_too_early(common)
        {
            self.requester.retry_at = None;
            if self.requester.waits() && self.state.requests() {
                common.counters.timeouts += 1;
                tracing::debug!(qpn = self.number().get(), tries = self.requester.tries, "timeout");
                let since = common.hosts.silent_since(self.host, self.requester.since);
                let silent = common.now >= common.leaps.end_of(common.hosts.limits.busy, since);
                if silent && self.requester.tries >= LEAST_ASKED {
                    let cause = Cause::peer_silent(&common.hosts.limits, Silence::Busy);
                    return self.break_with(cause, Blamed::Request(0), common);
                }
                if !self.gave_up(common) {
                    self.requester.chased = None;
                    let patience = Duration::from_nanos(self.requester.insists.patience);
                    self.requester.rto.back_off((patience / 8).min(LONGEST_PAUSE));
                    // The timer is set again when that is sent.
                    self.send_oldest_again(common);
                }
            }
        }
    }
}

impl Requester {
    /// How long to wait for an answer: not so long that the peer is taken for gone before several
    /// tries were made.
    pub fn patience(&self, common: &Common) -> Duration {
        self.rto.time().min(common.hosts.limits.busy / 4)
    }
}

impl QueuePair {
    /// Sees to it that what was sent is not forgotten.
    #[inline(always)]
    pub fn watch(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if common.lossless {
            if !r.flying {
                r.flying = true;
                common.flying.push(self.shared.place);
            }
        } else if r.retry_at.is_none() {
            let mut at = common.now + r.patience(common);
            if r.tries == 0 {
                r.since = common.now;
            } else if r.tries >= LEAST_ASKED {
                // The peer is taken for gone when it has been silent for so long, and not later.
                let since = common.hosts.silent_since(self.host, r.since);
                at = at.min(common.leaps.end_of(common.hosts.limits.busy, since));
            }
            (r.retry_at, r.watched) = (Some(at), common.now);
            self.arm_by(at, common);
        }
    }
}
