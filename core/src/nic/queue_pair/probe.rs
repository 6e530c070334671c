//! Probes: whether the peer of one queue pair is still there, asked on demand.
//!
//! The [keep-alive](crate::nic::keep_alive::peers) judges a peer, that is a host and a GUID, and
//! anything that comes from that peer on any connection satisfies it. A probe judges the other end
//! of a single queue pair: what comes by another connection of the same peer does not answer for
//! it.

use crate::encap::Full;
use crate::nic::device::outbox::Outbox;
use crate::nic::keep_alive::limits::{LEAST_QUESTIONS, QUESTIONS_PER_PROBE, Silence};
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::probe::Probe;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::planted::{Bug, planted};
use crate::wire::{Bth, DmaLength, Extensions, Headers, Opcode, RemoteAddr, Reth, Rkey, Service};

impl QueuePair {
    /// Begins a probe, unless one is under way.
    pub fn probe(&mut self, common: &mut Common) {
        let answers = !common.lossless && self.service() == Service::Rc && self.state.requests();
        if answers && self.probe.is_none_or(|probe| self.is_answered(probe)) {
            self.probe = Some(Probe { since: common.now, again: common.now, asked: 0 });
            self.arm_by(common.now, common);
        }
    }

    /// Whether a probe was answered. That is only found when the probe's timer expires, since a
    /// packet that comes does not look for probes.
    fn is_answered(&self, probe: Probe) -> bool {
        probe.asked > 0 && self.heard_at > probe.since
    }

    /// Ends a probe that was answered, sends its next keep-alive packet, or breaks the queue pair,
    /// if it is time for that.
    pub fn probe_timer_expired(&mut self, common: &mut Common) {
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
        let busy = common.peers.limits.busy;
        if common.now >= common.clock_jumps.patience_end(busy, probe.since)
            && probe.asked >= LEAST_QUESTIONS
        {
            let cause = Cause::peer_silent(&common.peers.limits, Silence::Busy);
            return self.break_with(cause, Blamed::Request(0), common);
        }
        probe.asked = probe.asked.saturating_add(1);
        // The peer is given up when the time is over, and not an interval later.
        let (next, end) = (common.now + busy / QUESTIONS_PER_PROBE, probe.since + busy);
        probe.again = if common.now < end { next.min(end) } else { next };
        self.probe = Some(probe);
        if !planted(Bug::AsksNobody) {
            self.responder.keep_alive_due = true;
            common.list_owing(self);
        }
        self.arm_by(probe.again, common);
    }

    /// Sends a keep-alive packet: a write of no bytes, with the sequence number before all that are
    /// not acknowledged. The peer takes it for a duplicate of a request that it executed long ago,
    /// and acknowledges that again.
    #[cold]
    pub fn send_keep_alive<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Full> {
        if let Some(path) = &self.path {
            let (address, rkey, length) = (RemoteAddr(0), Rkey(0), DmaLength(0));
            let psn = self.requester.oldest_psn.before();
            let bth = Bth::new(Opcode::RcWriteOnly, self.peer_qpn, psn).with_pkey(self.pkey);
            let headers = Headers {
                bth: bth.with_ack_request(true),
                extensions: Extensions::Reth(Reth { address, rkey, length }),
            };
            outbox.push(path, headers, &[][..])?;
            common.counters.sent += 1;
            common.counters.questions_sent += 1;
        }
        self.responder.keep_alive_due = false;
        Ok(())
    }
}
