//! Congestion: what acknowledgements and responses tell the [control](crate::nic::congestion), and
//! the moment at which the next packet may be sent.

use std::time::Duration;

use crate::nic::congestion::control::Progress;
use crate::nic::device::outbox::Outbox;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::requester::Requester;
use crate::time::Time;
use crate::wire::{Psn, Report};

/// The shortest read of which it is measured how long it takes, in bytes: the peer answers with a
/// packet more.
const MEASURED_READ: usize = 1024;

impl Requester {
    /// When packets begin to be sent, if that matters: by the device's clock, or as was `told`.
    #[inline(always)]
    pub fn begins_to_send<O: Outbox>(&self, outbox: &O, told: Time) -> Option<Time> {
        let control = self.control.as_ref()?;
        let next = self.next_psn;
        let matters = control.is_spaced() || control.measures(next, self.packets_ahead(next));
        matters.then(|| outbox.time().unwrap_or(told))
    }

    /// Notes that packets were sent for the first time, `first` and others behind it, with so much
    /// payload in them or in the responses that they ask for; and when that began.
    #[inline(always)]
    pub fn note_sent(&mut self, first: Psn, bytes: usize, began: Option<Time>) {
        if let Some(paths) = &mut self.paths {
            paths.sent(first, bytes);
        }
        match (&mut self.control, began) {
            (Some(control), Some(began)) => control.sent(first, bytes, began),
            (Some(control), None) => control.sent_unmeasured(),
            (None, _) => {}
        }
    }

    /// How many packets are under way that were sent before a packet.
    fn packets_ahead(&self, psn: Psn) -> u32 {
        let ahead = psn.distance_from(self.oldest_psn).max(0) as u32;
        ahead.saturating_sub(self.arrived_ahead)
    }

    /// Whether the peer is to say when the next request came, a read of so many bytes: its response
    /// doesn't, and how long the peer takes for that is not the path's affair.
    #[inline]
    pub fn asks_when_read_came(&self, bytes: usize) -> bool {
        let next = self.next_psn;
        let control = self.control.as_ref().filter(|_| bytes >= MEASURED_READ);
        control.is_some_and(|control| control.measures(next, self.packets_ahead(next)))
    }

    /// Returns a time-out that is up to twice as long, by chance: many whose packets did not fit into
    /// a buffer must not all send again at the same time.
    pub fn varied(&mut self, timeout: Duration) -> Duration {
        match &mut self.control {
            Some(control) => control.varied(timeout),
            None => timeout,
        }
    }

    /// Learns that everything up to packet `psn` has arrived, where that is all that is known.
    #[inline]
    pub fn learn_from_progress(&mut self, psn: Psn, now: Time) {
        if let Some(control) = self.control.as_mut().filter(|_| !self.selective) {
            let (arrived, unsent) = (self.oldest_psn, self.unsent_psn);
            let (held, marked) = (None, None);
            let (lost, spread) = (0, false);
            let known = Progress { newest: psn, held, marked, lost, spread, arrived, unsent };
            control.learn(&known, now);
        }
    }

    /// Opens the window as far as it may be open.
    pub fn reopen_window(&mut self) {
        // Where everything behind a loss is sent again, whole windows must not collide again.
        let doubled = self.open_window.saturating_mul(2);
        self.open_window = match &self.control {
            Some(control) if self.selective => control.window(),
            Some(control) => control.window().min(doubled),
            None => self.policy.window.min(doubled),
        };
    }

    /// Notes a time-out, after which one packet is sent.
    pub fn shut_window(&mut self, now: Time) {
        if let Some(control) = &mut self.control {
            control.timed_out(self.paths.is_some(), now);
        }
        self.open_window = 1;
    }
}

impl QueuePair {
    /// Learns what a peer's report tells of the path.
    #[inline]
    pub(crate) fn learn_from_report(&mut self, report: Report, common: &mut Common) {
        let held = match report.held {
            u32::MAX => None,
            nanos => Some(Duration::from_nanos(nanos.into())),
        };
        if let Some(held) = held {
            self.learn_of_path(report.newest, Some(held), Some(report.marked), common);
        }
        let r = &mut self.requester;
        r.rto.take_repeated(report.repeated);
        if let Some(paths) = &mut r.paths
            && report.newest.distance_from(r.unsent_psn) < 0
        {
            let waited = r.control.as_ref().map_or(0, |control| control.waited);
            paths.arrived(report.newest, report.marked, waited, common.now);
        }
    }

    /// Learns what the response to packet `psn` tells of the path.
    #[inline(always)]
    pub(crate) fn learn_from_response(&mut self, psn: Psn, common: &mut Common) {
        if self.requester.control.is_some() {
            self.learn_of_path(psn, None, None, common);
        }
    }

    fn learn_of_path(
        &mut self,
        newest: Psn,
        held: Option<Duration>,
        marked: Option<u32>,
        common: &mut Common,
    ) {
        let r = &mut self.requester;
        let Some(control) = &mut r.control else { return };
        // What was never sent tells nothing.
        if newest.distance_from(r.unsent_psn) >= 0 {
            return;
        }
        let lost = r.repair.as_ref().map_or(0, |repair| repair.losses);
        let arrived = r.oldest_psn.add(r.arrived_ahead);
        let (spread, unsent) = (r.paths.is_some(), r.unsent_psn);
        let progress = Progress { newest, held, marked, lost, spread, arrived, unsent };
        control.learn(&progress, common.arrived);
        r.reopen_window();
        common.activate(self);
    }

    /// Whether the packets that nothing was heard of are known to be lost, and wait for the time at
    /// which the next may be sent again. Then the retransmission timer is set anew from that time on.
    pub(crate) fn waits_to_repair(&mut self, common: &Common) -> bool {
        let r = &mut self.requester;
        let lost = r.repair.as_ref().is_some_and(|repair| repair.has_lost());
        let paced = r.control.as_ref().and_then(|control| control.waits_until(common.now));
        let Some(at) = paced.filter(|_| lost) else { return false };
        r.retry_at = Some(at + r.response_timeout(common));
        true
    }

    /// When the next packet may be sent, if not yet: the timer is armed for that.
    #[inline]
    pub(crate) fn waits_for_pace(&self, common: &mut Common) -> bool {
        let control = self.requester.control.as_ref();
        let at = control.and_then(|control| control.waits_until(common.now));
        if let Some(at) = at {
            self.arm_by(at, common);
        }
        at.is_some()
    }
}
