//! Acknowledgements: when the peer is owed one, and how it is sent.

use crate::encap::Full;
use crate::nic::device::outbox::Outbox;
use crate::nic::responder::holding::held_for;
use crate::nic::state::arrivals::Arrivals;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::OwedAcknowledgement;
use crate::nic::state::turns::ResponderTurn;
use crate::planted::{Bug, planted};
use crate::wire::{Aeth, Bth, Extensions, Headers, Opcode, Report, Service};

impl QueuePair {
    /// Sends some of what the peer is owed: first the responses to reads and atomic operations,
    /// then the acknowledgement of what came behind these.
    #[inline]
    pub fn send_owed<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
        most: u32,
    ) -> ResponderTurn {
        if !self.responder.resources.is_empty() {
            if self.tell_when_read_came(outbox, common).is_err() {
                return ResponderTurn::DeviceFull;
            }
            let turn = self.send_responses(common, outbox, most);
            if turn != ResponderTurn::AllSent {
                return turn;
            }
        }
        if self.send_notification(common, outbox).is_err() {
            return ResponderTurn::DeviceFull;
        }
        if self.responder.keep_alive_due && self.send_keep_alive(common, outbox).is_err() {
            return ResponderTurn::DeviceFull;
        }
        let Some(path) = &self.path else {
            self.responder.owed = OwedAcknowledgement::Nothing;
            return ResponderTurn::AllSent;
        };
        let r = &self.responder;
        let (psn, syndrome) = match r.owed {
            OwedAcknowledgement::Nothing => return ResponderTurn::AllSent,
            OwedAcknowledgement::Ack if planted(Bug::AcknowledgesAhead) => {
                (r.expected_psn, r.syndrome())
            }
            OwedAcknowledgement::Ack => (r.expected_psn.before(), r.syndrome()),
            OwedAcknowledgement::Nak(syndrome) => (r.expected_psn, syndrome),
        };
        let bth = Bth::new(Opcode::RcAcknowledge, self.peer_qpn, psn).with_pkey(self.pkey);
        let aeth = Aeth { syndrome, msn: r.msn };
        let pushed = match &r.arrivals {
            Some(arrivals) if r.owed == OwedAcknowledgement::Ack => {
                let mut bits = [0; Report::MOST_BITS / 8];
                let held = arrivals.held.as_ref();
                let len = held.map_or(0, |held| held.bits(r.expected_psn, &mut bits));
                let now = outbox.time().unwrap_or(common.now);
                let extensions = Extensions::AethReport(aeth, self.report(arrivals, now));
                let bth = bth.with_opcode(Opcode::RcAcknowledgeSelective);
                outbox.push(path, Headers { bth, extensions }, &bits[..len])
            }
            _ => outbox.push(path, Headers { bth, extensions: Extensions::Aeth(aeth) }, &[][..]),
        };
        if pushed.is_err() {
            return ResponderTurn::DeviceFull;
        }
        self.acknowledged_by_path(common.now);
        let r = &mut self.responder;
        common.counters.sent += 1;
        common.counters.acks_sent += u64::from(r.owed == OwedAcknowledgement::Ack);
        r.clear_owed();
        ResponderTurn::AllSent
    }

    /// Tells the peer when its read came, if it asked. That acknowledges what was before the first
    /// read that is not answered.
    #[inline]
    fn tell_when_read_came<O: Outbox>(
        &mut self,
        outbox: &mut O,
        common: &mut Common,
    ) -> Result<(), Full> {
        let r = &mut self.responder;
        let Some(arrivals) = r.arrivals.as_mut().filter(|arrivals| arrivals.read.is_some()) else {
            return Ok(());
        };
        let (Some((newest, at)), Some(path), Some(first)) =
            (arrivals.read, &self.path, r.resources.front())
        else {
            return Ok(());
        };
        let held = held_for(at, outbox.time().unwrap_or(common.now));
        let Arrivals { marked, repeated, .. } = **arrivals;
        let report = Report { newest, held, marked, repeated };
        let psn = first.response.psn().before();
        let bth = Bth::new(Opcode::RcAcknowledgeSelective, self.peer_qpn, psn);
        let aeth = Aeth { syndrome: r.syndrome(), msn: r.msn };
        let extensions = Extensions::AethReport(aeth, report);
        outbox.push(path, Headers { bth: bth.with_pkey(self.pkey), extensions }, &[][..])?;
        common.counters.sent += 1;
        if let Some(arrivals) = &mut self.responder.arrivals {
            arrivals.read = None;
        }
        Ok(())
    }

    /// Counts a packet as accepted, and sees to its acknowledgement.
    #[inline(always)]
    pub fn count_accepted(
        &mut self,
        len: usize,
        asked: bool,
        service: Service,
        common: &mut Common,
    ) {
        self.responder.accept_packet();
        self.owe_acknowledgement(len, asked, service, common);
    }

    /// Sees to the acknowledgement of a packet of `len` bytes that was accepted. It is sent soon if
    /// the packet `asked` for it or many packets are unacknowledged, and is delayed otherwise.
    #[inline(always)]
    pub fn owe_acknowledgement(
        &mut self,
        len: usize,
        asked: bool,
        service: Service,
        common: &mut Common,
    ) {
        if common.lossless || service == Service::Uc {
            return;
        }
        let r = &mut self.responder;
        if let Some(arrivals) = &mut r.arrivals {
            arrivals.accepted_at = common.arrived;
        }
        // Long packets fill the peer's window sooner.
        r.unacknowledged = r.unacknowledged.saturating_add(1 + (len >> 10) as u16);
        if asked || r.unacknowledged >= r.ack_every {
            common.owe(self, OwedAcknowledgement::Ack);
        } else if r.look_at.is_none() {
            let at = common.now.after(r.look_interval.into());
            (r.look_at, r.unacknowledged_at_look, r.looks) = (Some(at), r.unacknowledged, 0);
            common.list_delaying(r, self.shared.place);
            self.arm_by(at, common);
        }
    }
}
