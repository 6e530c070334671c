//! Responses: the acknowledgements and responses that come from the peer.

use std::ops::Range;

use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::segment::Domain;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::gather::scatter;
use crate::nic::requests::memory::{Data, Memory};
use crate::nic::requests::work_request::Operation as WorkOperation;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{
    Aeth, AtomicValue, Credits, Extensions, Msn, Nak, OpcodeInfo, Operation, Packet, Psn, Verdict,
};

impl QueuePair {
    /// Takes an acknowledgement, or a response to a read or an atomic operation.
    #[inline(always)]
    pub fn receive_response<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        let headers = &packet.headers;
        if !self.state.requests() {
            common.counters.wrong_state += 1;
            return;
        }
        match (info.operation, headers.extensions) {
            (Operation::Acknowledge, Extensions::Aeth(aeth)) => {
                self.receive_acknowledge(headers.bth.psn(), aeth, common);
            }
            (Operation::Acknowledge, Extensions::AethReport(aeth, report)) => {
                let psn = headers.bth.psn();
                match aeth.syndrome.verdict() {
                    Verdict::Ack(credits) => {
                        let last = last_receive(aeth, credits);
                        self.receive_report(psn, last, report, packet.payload, common);
                    }
                    _ => self.receive_acknowledge(psn, aeth, common),
                }
            }
            (
                Operation::AtomicAcknowledge,
                Extensions::AethAtomicAck(aeth, AtomicValue(before)),
            ) => {
                self.receive_atomic_response(headers.bth.psn(), aeth, before, common);
            }
            (Operation::ReadResponse, _) => self.receive_read_response(packet, common),
            _ => common.counters.stray_answers += 1,
        }
    }

    /// Whether the response to packet `psn` is the one that comes next: the peer has received
    /// everything before it, and answered it.
    #[inline]
    fn is_next_response(&mut self, psn: Psn, common: &mut Common) -> bool {
        let before = psn.before();
        if self.is_under_way(psn) && self.is_under_way(before) {
            self.acknowledge_up_to(before, common);
        }
        let next = self.is_under_way(psn) && psn == self.oldest_psn();
        common.counters.stray_answers += u64::from(!next);
        next
    }

    /// Takes the credit of a response: how many receives the peer has.
    #[inline]
    pub(crate) fn take_credits(&mut self, aeth: Aeth) {
        if let Verdict::Ack(credits) = aeth.syndrome.verdict() {
            self.set_credit(last_receive(aeth, credits));
        }
    }

    /// Takes the result of an atomic operation.
    #[inline(always)]
    fn receive_atomic_response(&mut self, psn: Psn, aeth: Aeth, before: u64, common: &mut Common) {
        if self.repairs_response(psn) {
            return self.repair_response(psn, Some(aeth), Some(before), &[][..], common);
        }
        if !self.is_next_response(psn, common) {
            return;
        }
        let atomic = self.requester.front().is_some_and(|posted| {
            let operation = &posted.request.operation;
            posted.needs_response() && !matches!(operation, WorkOperation::Read { .. })
        });
        if !atomic {
            common.counters.stray_answers += 1;
            return;
        }
        common.counters.answers_received += 1;
        self.take_credits(aeth);
        if self.oldest_response_received(0) {
            self.complete_head(before, common);
        }
        self.restart_response_timer(psn, common);
        self.learn_from_response(psn, common);
    }

    /// Takes a packet of what was read. Whether its opcode says first, middle or last does not
    /// matter: peers that were asked for the rest of a read answer with either.
    #[inline(always)]
    fn receive_read_response<P: Payload>(&mut self, packet: &Packet<P>, common: &mut Common) {
        let psn = packet.headers.bth.psn();
        if self.repairs_response(psn) {
            let aeth = match packet.headers.extensions {
                Extensions::Aeth(aeth) => Some(aeth),
                _ => None,
            };
            return self.repair_response(psn, aeth, None, packet.payload, common);
        }
        if !self.is_next_response(psn, common) {
            return;
        }
        let (mtu, at) = (self.mtu.bytes(), self.bytes_read());
        let domain = self.domain;
        let Some(posted) = self.requester.front() else { return };
        let (len, request) = (posted.len as usize, &mut posted.request);
        let (WorkOperation::Read { .. }, Data::Memory(memory)) =
            (request.operation, &mut request.data)
        else {
            common.counters.stray_answers += 1;
            return;
        };
        let part = at..len.min(at + mtu);
        if let Err(cause) = put_read(memory, part, packet.payload, &common.keys, domain) {
            return self.break_with(cause, Blamed::Request(0), common);
        }
        common.counters.answers_received += 1;
        if let Extensions::Aeth(aeth) = packet.headers.extensions {
            self.take_credits(aeth);
        }
        if self.oldest_response_received(len as u32) {
            self.complete_head(0, common);
        }
        self.restart_response_timer(psn, common);
        self.learn_from_response(psn, common);
    }

    /// Takes an acknowledgement, positive or negative.
    #[inline]
    fn receive_acknowledge(&mut self, psn: Psn, aeth: Aeth, common: &mut Common) {
        match aeth.syndrome.verdict() {
            Verdict::Ack(credits) => {
                self.receive_ack(psn, last_receive(aeth, credits), common);
            }
            Verdict::Nak(Nak::SequenceError) => self.receive_sequence_nak(psn, common),
            Verdict::ReceiverNotReady(timer) => {
                // While nothing is sent, it can only be a duplicate of the same RNR NAK.
                if self.waits_for_rnr_timer() {
                    common.counters.stray_answers += 1;
                } else if self.nak_is_under_way(psn, common) {
                    common.counters.rnr_naks_received += 1;
                    self.wait_for_rnr_timer(psn, timer, common);
                }
            }
            Verdict::Nak(nak) => self.receive_fatal_nak(psn, aeth, nak, common),
            Verdict::Reserved => {
                let cause = Cause::BadAnswer(aeth.syndrome.code());
                if self.nak_is_under_way(psn, common) {
                    let blamed = self.blamed_request(psn);
                    self.break_with(cause, blamed, common);
                }
            }
        }
    }

    /// Takes a positive acknowledgement of packet `psn`. `last` is the last message that the peer
    /// has a receive for, if it said so.
    #[inline]
    pub(crate) fn receive_ack(&mut self, psn: Psn, last: Option<Msn>, common: &mut Common) {
        if !self.is_under_way(psn) && !planted(Bug::BelievesAnyAcknowledgement) {
            // A duplicate of the newest acknowledgement brings news of receives; others bring
            // nothing.
            if psn.add(1) == self.oldest_psn() {
                self.set_credit(last);
                common.activate(self);
            }
            common.counters.stray_answers += 1;
            return;
        }
        common.counters.acks_received += 1;
        self.set_credit(last);
        self.acknowledge_up_to(psn, common);
    }

    /// Takes a NAK which says that packet `psn` is missing at the peer, and everything before it
    /// has arrived.
    fn receive_sequence_nak(&mut self, psn: Psn, common: &mut Common) {
        // While the requester waits after an RNR NAK, nothing is missing that was not refused
        // before.
        if !self.nak_is_under_way(psn, common) || self.waits_for_rnr_timer() {
            return;
        }
        common.counters.sequence_naks_received += 1;
        // If responses from before the packet are missing, these were requested again, and so
        // everything behind them is sent again already.
        if psn == self.oldest_psn() && !self.retries_exhausted(common) {
            self.retransmit_from(psn, common);
        }
    }

    /// Takes a NAK of packet `psn` that breaks the queue pair.
    fn receive_fatal_nak(&mut self, psn: Psn, aeth: Aeth, nak: Nak, common: &mut Common) {
        if !self.nak_is_under_way(psn, common) {
            return;
        }
        common.counters.fatal_naks_received += 1;
        let cause = match nak {
            Nak::InvalidRequest | Nak::InvalidRdRequest => Cause::PeerInvalidRequest,
            Nak::RemoteAccess => Cause::PeerAccess,
            Nak::RemoteOperation => Cause::PeerOperation,
            Nak::SequenceError => Cause::BadAnswer(aeth.syndrome.code()),
        };
        let blamed = self.blamed_request(psn);
        self.break_with(cause, blamed, common);
    }

    /// Acknowledges everything before packet `psn`, which a NAK of that packet implies. Returns
    /// whether the packet is under way at all: a missing packet may have arrived while the NAK
    /// waited to be sent, and the NAK then names a packet that was not sent yet.
    fn nak_is_under_way(&mut self, psn: Psn, common: &mut Common) -> bool {
        let before = psn.before();
        if self.is_under_way(before) {
            self.acknowledge_up_to(before, common);
        }
        let under_way = self.is_under_way(psn);
        common.counters.stray_answers += u64::from(!under_way);
        under_way
    }
}

/// The last message that the peer has a receive for, as an acknowledgement says it.
#[inline]
fn last_receive(aeth: Aeth, credits: Option<Credits>) -> Option<Msn> {
    credits.map(|credits| aeth.msn.add(u32::from(credits.messages())))
}

/// Puts the payload of a response where it belongs: in the part of a read's memory that the packet
/// is to bring.
#[inline(always)]
pub(crate) fn put_read<P: Payload>(
    memory: &mut Memory,
    part: Range<usize>,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<(), Cause> {
    let (found, expected) = (payload.len(), part.len());
    if found != expected {
        let (found, expected) = (found as u16, expected as u16);
        return Err(Cause::AnswerLength { found, expected });
    }
    let at = if planted(Bug::MisplacesAnswers) { 0 } else { part.start };
    scatter(memory, at, payload, keys, domain)
}
