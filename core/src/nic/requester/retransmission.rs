//! Retransmission: what is sent again, and when; and when the peer is given up.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::nic::config::queue_pair_state::State;
use crate::nic::keep_alive::limits::{LEAST_QUESTIONS, Silence};
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::requester::{Requester, RetryPolicy};
use crate::planted::{Bug, planted};
use crate::wire::{PathMtu, Psn, RnrTimer};

/// How often a peer is asked what it has before a time-out. Each time is twice as long after the one
/// before.
const MOST_PROBES: u8 = 3;

/// The longest time between two tries, unless the path takes longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The longest time between two tries where congestion is controlled, unless the path takes longer.
/// It is short, since a window of a part of a packet keeps a busy network from being flooded.
const LONGEST_CONTROLLED_PAUSE: Duration = Duration::from_millis(10);

impl Requester {
    /// How long to wait for an acknowledgement: not so long that the peer is taken for gone before
    /// several tries were made.
    pub fn response_timeout(&self, common: &Common) -> Duration {
        self.rto.timeout().min(common.peers.limits.busy / 4)
    }

    /// How long to wait for an acknowledgement at first. Where only what is missing is sent again, the
    /// peer is asked before the time-out is over what has become of the oldest packet.
    pub fn first_timeout(&self, common: &Common) -> Duration {
        self.probe_timeout(common).unwrap_or(self.response_timeout(common))
    }

    /// How long to wait before the peer is asked what it has, if that is to be done before the
    /// time-out is over.
    fn probe_timeout(&self, common: &Common) -> Option<Duration> {
        let asks = self.selective && self.tries == 0 && self.probes < MOST_PROBES;
        // Where there are several routes, the next probe takes another, and need not wait longer.
        let times = if self.paths.is_some() { 1 } else { 1 << self.probes };
        let timeout = Some(self.rto.probe_timeout() * times).filter(|_| asks)?;
        let most = self.response_timeout(common);
        // However much the time varies that the path takes, the peer is asked once.
        (self.probes == 0 || timeout < most).then_some(timeout.min(most))
    }

    /// Takes the answer to the packet that was sent again after a time-out. If the peer has more
    /// than that packet, it was slow and nothing was lost (as RFC 5682 has it for TCP): the
    /// requester goes on where it was. If something was lost after all, the peer refuses what is
    /// sent now; where nothing may be sent, that can't be waited for.
    #[cold]
    pub fn timeout_retry_answered(&mut self, psn: Psn, state: State, mtu: PathMtu) {
        let Some((probe, open)) = self.timeout_retry.take() else { return };
        let back = self.next_psn;
        if psn.distance_from(probe) > 0 && state != State::Draining {
            self.move_cursor(self.unsent_psn, mtu);
            if self.can_continue() {
                self.open_window = open.get();
                return;
            }
            self.move_cursor(back, mtu);
        }
        // What comes behind the packet is sent again, too.
        self.rto.discard_sample();
    }

    /// Whether the time-out that has passed began before its packets were sent, since the clock was
    /// not read in between. Then the timer is set anew from when they may have been sent.
    #[cold]
    fn response_timer_was_early(&mut self, common: &Common) -> bool {
        let from = common.clock_jumps.latest_time(self.timer_set_at);
        if from == self.timer_set_at {
            return false;
        }
        let at = from + self.response_timeout(common);
        self.last_progress = common.clock_jumps.latest_time(self.last_progress);
        (self.timer_set_at, self.retry_at) = (from, Some(at));
        at > common.now
    }

    /// Whether a request stands at the cursor, and waits neither for what is under way nor for the
    /// peer's receives.
    fn can_continue(&mut self) -> bool {
        let (asking, most) = (self.reads_outstanding, u32::from(self.policy.reads));
        let Some(posted) = self.work.peek(self.cursor) else { return false };
        let request = &posted.request;
        let waits = request.fenced && asking > 0 || posted.needs_response() && asking >= most;
        let needs_receive = request.takes_receive() && self.cursor_packet == 0;
        !(waits || needs_receive && self.is_out_of_receives())
    }
}

impl QueuePair {
    /// Sends everything from `psn` on again.
    pub fn retransmit_from(&mut self, psn: Psn, common: &mut Common) {
        if self.requester.selective {
            return self.lose_refused(psn, common);
        }
        let (from, _) = self.requester.position_of(psn, self.mtu);
        if self.requester.has_copied(from) {
            return self.break_with(Cause::NotKept, Blamed::Request(from), common);
        }
        self.set_cursor_back(psn, common);
        self.requester.rto.discard_sample();
    }

    /// Sets the cursor back to a packet.
    fn set_cursor_back(&mut self, psn: Psn, common: &mut Common) {
        if planted(Bug::GoesBackToTheNewest) {
            return self.requester.move_cursor(self.requester.unsent_psn, self.mtu);
        }
        self.requester.move_cursor(psn, self.mtu);
        common.activate(self);
    }

    /// Sends the oldest packet again. Its acknowledgement says whether the peer is there, and what
    /// it has: to send all of the window again at once would often be for nothing.
    fn retransmit_oldest(&mut self, common: &mut Common) {
        if self.requester.selective {
            self.requester.shut_window(common.now);
            self.requester.rto.discard_sample();
            return self.lose_all_again(common);
        }
        let oldest = self.requester.oldest_psn;
        let open = NonZeroU32::new(self.requester.open_window).unwrap_or(NonZeroU32::MIN);
        let open = self.requester.timeout_retry.map_or(open, |(_, before)| before);
        self.set_cursor_back(oldest, common);
        self.requester.open_window = 1;
        self.requester.timeout_retry = Some((oldest, open));
        self.requester.rto.discard_sample_of(oldest);
    }

    /// Returns the request that a packet belongs to. It need not be the first that is unfinished,
    /// since responses to reads and atomic operations before it may have been lost.
    pub fn blamed_request(&mut self, psn: Psn) -> Blamed {
        Blamed::Request(self.requester.position_of(psn, self.mtu).0)
    }

    /// Counts a try that failed, and breaks the queue pair if it was the last: if the retries are
    /// used up, and the patience is over, which counts from when the peer last acknowledged
    /// something. What comes from the peer meanwhile, and acknowledges nothing that is under way,
    /// does not prolong the patience: otherwise a peer that lives and acknowledges nothing would be
    /// waited for without end. Returns whether the queue pair broke.
    pub fn retries_exhausted(&mut self, common: &mut Common) -> bool {
        let r = &mut self.requester;
        let (tries, RetryPolicy { retries, patience, .. }) = (r.tries, &r.policy);
        let patience = Duration::from_nanos(*patience);
        let patient = common.now < common.clock_jumps.patience_end(patience, r.last_progress);
        r.tries = tries.saturating_add(1);
        if tries < *retries || patient {
            return false;
        }
        // Something may have come from the peer since the last try.
        let cause = match self.heard_at > r.timer_set_at {
            true => Cause::NoProgress { tries: r.tries },
            false => Cause::NoAnswer { tries: r.tries },
        };
        self.break_with(cause, Blamed::Request(0), common);
        true
    }

    /// Waits as long as the RNR NAK of packet `psn` asks for, unless that was once too often.
    pub fn wait_for_rnr_timer(&mut self, psn: Psn, wait: RnrTimer, common: &mut Common) {
        let r = &mut self.requester;
        let (from, _) = r.position_of(psn, self.mtu);
        let patient = r.policy.rnr_retries >= 7 || r.rnr_tries < r.policy.rnr_retries;
        // Everything that is not acknowledged would be sent again.
        if !patient || r.has_copied(0) {
            let cause = Cause::ReceiverNotReady { tries: r.rnr_tries.saturating_add(1), wait };
            return self.break_with(cause, Blamed::Request(from), common);
        }
        r.rnr_tries = r.rnr_tries.saturating_add(1);
        // An RNR NAK is a sign of life.
        r.tries = 0;
        r.rto.end_back_off();
        let at = common.now + wait.delay();
        (r.resume_at, r.retry_at) = (Some(at), None);
        // The oldest packet is the refused one, unless responses from before it are missing.
        let from = if self.requester.selective { psn } else { self.requester.oldest_psn };
        self.retransmit_from(from, common);
        self.arm_by(at, common);
    }

    /// Processes the expiry of the timer: sends again after an RNR NAK's wait, or after a time-out.
    pub fn requester_timer_expired(&mut self, common: &mut Common) {
        if self.requester.resume_at.is_some_and(|at| at <= common.now) {
            self.requester.resume_at = None;
            common.activate(self);
        }
        if self.requester.retry_at.is_some_and(|at| at <= common.now)
            && !self.requester.response_timer_was_early(common)
            && !self.waits_to_repair(common)
        {
            self.requester.retry_at = None;
            let waits = self.requester.has_outstanding() && self.state.requests();
            if waits && self.requester.probe_timeout(common).is_some() {
                self.probe_tail(common);
            } else if waits {
                common.counters.timeouts += 1;
                tracing::debug!(qpn = self.number().get(), tries = self.requester.tries, "timeout");
                let since = common.peers.silent_since(self.peer_id, self.requester.last_progress);
                let silent =
                    common.now >= common.clock_jumps.patience_end(common.peers.limits.busy, since);
                if silent && self.requester.tries >= LEAST_QUESTIONS {
                    let cause = Cause::peer_silent(&common.peers.limits, Silence::Busy);
                    return self.break_with(cause, Blamed::Request(0), common);
                }
                if !self.retries_exhausted(common) {
                    self.requester.rerequested = None;
                    let patience = Duration::from_nanos(self.requester.policy.patience);
                    let longest = match self.requester.is_controlled() && self.requester.selective {
                        true => LONGEST_CONTROLLED_PAUSE,
                        false => LONGEST_PAUSE,
                    };
                    self.requester.rto.back_off((patience / 8).min(longest));
                    // The timer is set again when the packet is sent.
                    self.retransmit_oldest(common);
                }
            }
        }
    }

    /// Sends the oldest packet again before the time-out is over, since nothing that was sent behind
    /// it has told that it is missing.
    fn probe_tail(&mut self, common: &mut Common) {
        common.counters.tail_probes += 1;
        let r = &mut self.requester;
        r.probes += 1;
        if r.probes > 1 {
            r.shut_window(common.now);
        }
        let timeout = r.first_timeout(common);
        (r.retry_at, r.timer_set_at) = (Some(common.now + r.varied(timeout)), common.now);
        self.lose_oldest(common);
    }

    /// Sets the retransmission timer anew, since something has arrived, though the oldest packet has
    /// not.
    pub fn start_response_timer_anew(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if r.under_way() > 0 && r.tries == 0 && r.resume_at.is_none() {
            r.probes = 0;
            let timeout = r.first_timeout(common);
            let at = common.now + r.varied(timeout);
            (r.retry_at, r.timer_set_at) = (Some(at), common.now);
            self.arm_by(at, common);
        }
    }

    /// Sees to it that what was sent is completed or sent again: sets the retransmission timer, or
    /// on a lossless device enters the queue pair in the list of those that await deliveries.
    #[inline(always)]
    pub fn start_response_timer(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if common.lossless {
            if !r.awaits_delivery {
                r.awaits_delivery = true;
                common.awaiting_delivery.push(self.shared.place);
            }
        } else if r.retry_at.is_none() {
            let timeout = r.first_timeout(common);
            let mut at = common.now + r.varied(timeout);
            if r.tries == 0 {
                r.last_progress = common.now;
            } else if r.tries >= LEAST_QUESTIONS {
                // The peer is taken for gone when it has been silent for this long, and not later.
                let since = common.peers.silent_since(self.peer_id, r.last_progress);
                at = at.min(common.clock_jumps.patience_end(common.peers.limits.busy, since));
            }
            (r.retry_at, r.timer_set_at) = (Some(at), common.now);
            self.arm_by(at, common);
        }
    }
}
