//! Receiving requests: the check of their sequence numbers, and which are executed, refused, or
//! dropped.

use crate::nic::config::queue_pair_state::State;
use crate::nic::requests::failure::Cause;
use crate::nic::responder::outcomes::{Refusal, Reply};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::{InboundMessage, OwedAcknowledgement};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{
    Extensions, Headers, Nak, OpcodeInfo, Operation, Packet, Psn, Service, Syndrome,
};

impl QueuePair {
    /// Takes a request packet of the peer's.
    #[inline(always)]
    pub fn receive_request<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        self.check_sequence(packet, info, common);
        self.update_expected_likeness();
    }

    /// Checks the sequence number of a request packet, and executes the request, refuses it, or
    /// drops it.
    #[inline(always)]
    fn check_sequence<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        let bth = packet.headers.bth;
        if self.state != State::ReadyToSend && !self.accepts_requests(bth.psn(), common) {
            return;
        }
        let ahead = bth.psn().distance_from(self.responder.expected_psn);
        if ahead != 0 && info.service == Service::Uc {
            if !self.resynchronises(bth, ahead, common) {
                return;
            }
        } else if ahead < 0 && !planted(Bug::TakesDuplicates) {
            return self.receive_duplicate(packet.headers, info, common);
        } else if ahead > 0 && !planted(Bug::IgnoresGaps) {
            return self.receive_beyond_gap(packet, ahead, info, common);
        }
        let holds = self.responder.holds();
        match self.execute(packet, info, common) {
            Ok(Reply::Acknowledgement) => {
                self.count_accepted(packet.payload.len(), bth.ack_request(), info.service, common);
            }
            Ok(Reply::Response) => {
                self.responder.accept_packet();
                if let Some(arrivals) =
                    self.responder.arrivals.as_mut().filter(|_| bth.ack_request())
                {
                    arrivals.read = Some((bth.psn(), common.arrived));
                }
                common.list_owing(self);
            }
            Err(_) if info.service == Service::Uc && !planted(Bug::BreaksInsteadOfPassingOver) => {
                self.drop_unreliable_message(bth, common);
            }
            Err(refusal) => return self.refuse_request(refusal, common),
        }
        if holds {
            self.carry_out_held(bth.psn(), common);
        }
    }

    /// Whether requests are accepted in a state other than [`State::ReadyToSend`].
    #[cold]
    fn accepts_requests(&mut self, psn: Psn, common: &mut Common) -> bool {
        if self.state == State::ReadyToReceive {
            self.note_established(common);
        }
        if !self.state.responds() {
            common.counters.wrong_state += 1;
            // On an unreliable connection the sender does not ask what became of its packet.
            if common.lossless && self.service() == Service::Rc {
                self.reject_undelivered(psn, common);
            }
        }
        self.state.responds()
    }

    /// Refuses the request that was expected.
    #[cold]
    pub fn refuse_request(&mut self, refusal: Refusal, common: &mut Common) {
        match refusal {
            Refusal::NotReady => self.refuse_without_receive(common),
            Refusal::Fatal(nak, cause) => {
                common.counters.fatal_naks_sent += 1;
                common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(nak)));
                let blamed = match cause {
                    Cause::TooLong { .. } | Cause::LocalProtection { .. } => Blamed::Receive,
                    _ => Blamed::Nothing,
                };
                self.break_with(cause, blamed, common);
            }
        }
    }

    /// Takes a duplicate request, whose packet was accepted before.
    #[cold]
    fn receive_duplicate(&mut self, headers: Headers, info: OpcodeInfo, common: &mut Common) {
        common.counters.duplicates += 1;
        if common.lossless {
            return self.reject_undelivered(headers.bth.psn(), common);
        }
        self.leave_path_of_acknowledgements(common.now);
        match info.operation {
            Operation::ReadRequest => self.repeat_read(headers, common),
            Operation::CompareSwap | Operation::FetchAdd => {
                self.repeat_atomic(headers, common);
            }
            _ => {
                // A keep-alive packet, which writes nothing, is no sign of impatience.
                let is_empty =
                    matches!(headers.extensions, Extensions::Reth(reth) if reth.length.0 == 0);
                if !is_empty {
                    self.count_repeated();
                }
                common.owe(self, OwedAcknowledgement::Ack);
            }
        }
    }

    /// Refuses a packet that a lossless device has delivered and that is not accepted, since its
    /// sender would take it for done. If it is the expected one, its sender has it under way, and
    /// understands a NAK of it. Any other packet is of a connection that is no more, for on such a
    /// device nothing comes twice or out of order: its sender has to be found by its link.
    #[cold]
    fn reject_undelivered(&mut self, psn: Psn, common: &mut Common) {
        if psn == self.responder.expected_psn {
            common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(Nak::RemoteOperation)));
        } else if let Some(path) = &self.path {
            common.owe_delivery_failure(path.id(), self.shared.qpn, psn);
        }
    }

    /// Takes a packet from beyond a gap in the sequence numbers.
    #[cold]
    fn receive_beyond_gap<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        ahead: i32,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        common.counters.out_of_sequence += 1;
        if common.lossless {
            return self.receive_after_refused(packet.headers, info, common);
        }
        if self.responder.is_selective() {
            return self.keep_beyond_gap(packet, ahead as u32, common);
        }
        if !self.responder.nak_sent || planted(Bug::RefusesEachPacket) {
            self.responder.nak_sent = true;
            common.counters.sequence_naks_sent += 1;
            common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(Nak::SequenceError)));
        }
    }

    /// Takes a packet that comes too early on a lossless device. Either the peer sent it behind a
    /// refused one before it received the NAK, and then each of these packets follows the one
    /// before. Or it is not of the peer's present connection.
    fn receive_after_refused(&mut self, headers: Headers, info: OpcodeInfo, common: &mut Common) {
        let (psn, r) = (headers.bth.psn(), &mut self.responder);
        if r.nak_sent && psn == r.psn_after_refused {
            // A read takes as many sequence numbers as it requests packets.
            let reads = info.operation == Operation::ReadRequest;
            r.psn_after_refused = psn.add(match headers.extensions {
                Extensions::Reth(reth) if reads => self.mtu.packets(reth.length.0),
                _ => 1,
            });
        } else {
            self.reject_undelivered(psn, common);
        }
    }

    /// Refuses the expected packet by an RNR NAK, since no receive is posted.
    fn refuse_without_receive(&mut self, common: &mut Common) {
        self.responder.nak_sent = true;
        self.responder.psn_after_refused = self.responder.expected_psn.add(1);
        common.counters.rnr_naks_sent += 1;
        common.owe(self, OwedAcknowledgement::Nak(Syndrome::not_ready(self.responder.rnr_timer)));
    }

    /// Executes the expected request packet, or does nothing at all if it is refused.
    #[inline(always)]
    pub(super) fn execute<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) -> Result<Reply, Refusal> {
        let right_length = info.payload.allows(packet.payload.len(), self.mtu.bytes());
        if !right_length {
            return Err(Refusal::INVALID);
        }
        match info.operation {
            Operation::Send => self.execute_send(packet, info, common)?,
            Operation::Write => self.execute_write(packet, common)?,
            _ if !matches!(self.responder.inbound, InboundMessage::Nothing) => {
                return Err(Refusal::INVALID);
            }
            Operation::ReadRequest => {
                self.execute_read(packet.headers, &common.keys)?;
                return Ok(Reply::Response);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                self.execute_atomic(packet.headers, &common.keys)?;
                return Ok(Reply::Response);
            }
            _ => return Err(Refusal::INVALID),
        }
        Ok(Reply::Acknowledgement)
    }
}
