//! Probes: whether the peer of one queue pair is still there, asked on demand.
//!
//! The keep-alive of [`hosts`](super::hosts) judges a peer, that is a host and a GUID, and anything
//! that comes from that peer on any connection satisfies it. A probe judges the other end of a
//! single queue pair: what comes by another connection of the same peer does not answer for it.

use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::{Qpn, Service};

use super::common::Common;
use super::hosts::{LEAST_ASKED, Silence};
use super::pair::{Blamed, QueuePair};
use super::{Nic, find};

/// How many questions a probe asks within [`KeepAlive::busy`](super::KeepAlive::busy), evenly
/// spread. Where three of ten packets are lost, each way, a peer that lives fails to answer all of
/// them about twice in 100,000 probes.
pub(super) const QUESTIONS: u32 = 16;

/// A probe that is under way.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// When the first question was asked. Whatever came by the queue pair since then ends the
    /// probe.
    since: Time,
    /// When to ask again, or to judge.
    pub again: Time,
    /// How many questions were asked. The first is asked when the clock is read next: the time that
    /// was told last may be long ago.
    asked: u8,
}

impl Nic {
    /// Demands a sign of life from the peer of a reliable connection: the peer is asked whether it
    /// is there, sixteen times within [`KeepAlive::busy`](super::KeepAlive::busy), and if nothing
    /// at all comes by this queue pair until then, the connection breaks with
    /// [`Cause::PeerSilent`](super::Cause::PeerSilent).
    ///
    /// This is for a program that waits for something that only the peer's program can send: the
    /// peer's NIC has acknowledged the request, so nothing is under way, and the peer would be
    /// missed only after [`KeepAlive::idle`](super::KeepAlive::idle). To probe again while a probe
    /// is under way changes nothing. A probe costs about a packet each way if the peer is there,
    /// and nothing on the way of messages.
    ///
    /// Nothing is done for a queue pair that is not there, is not ready to send, or is not a
    /// reliable connection; nor on a lossless device, which tells itself when a peer has ended.
    #[cold]
    pub fn probe(&mut self, qpn: Qpn) {
        let Self { common, pairs, numbers, .. } = self;
        if let Some(pair) = find(pairs, *numbers, qpn) {
            pair.probe(common);
        }
    }
}

impl QueuePair {
    fn probe(&mut self, common: &mut Common) {
        let answers = !common.lossless && self.service() == Service::Rc && self.state.requests();
        if answers && self.probe.is_none_or(|probe| self.is_answered(probe)) {
            self.probe = Some(Probe { since: common.now, again: common.now, asked: 0 });
            self.arm_by(common.now, common);
        }
    }

    /// Whether a probe was answered. That is only found when the probe is looked at, since what
    /// comes by the queue pair does not look for probes.
    fn is_answered(&self, probe: Probe) -> bool {
        probe.asked > 0 && self.heard > probe.since
    }

    /// Ends a probe that was answered, asks once more, or finds the peer silent: if it is time.
    pub fn probe_expire(&mut self, common: &mut Common) {
        let Some(mut probe) = self.probe else { return };
        if self.is_answered(probe) || !self.state.requests() {
            self.probe = None;
            return;
        }
        if common.now < probe.again {
            return;
        }
        if probe.asked == 0 {
            probe.since = common.now;
        }
        let busy = common.hosts.limits.busy;
        if common.now >= common.leaps.end_of(busy, probe.since) && probe.asked >= LEAST_ASKED {
            let cause = common.hosts.silent(Silence::Busy);
            return self.break_with(cause, Blamed::Request(0), common);
        }
        probe.asked = probe.asked.saturating_add(1);
        // The judgement comes when the time is over, and not an interval later.
        let (next, end) = (common.now + busy / QUESTIONS, probe.since + busy);
        probe.again = if common.now < end { next.min(end) } else { next };
        self.probe = Some(probe);
        if !planted(Bug::AsksNobody) {
            self.responder.asks = true;
            common.owe_answer(self);
        }
        self.arm_by(probe.again, common);
    }
}
