//! Which requests of the peer's are taken, refused, or passed over.

use crate::nic::config::state::State;
use crate::nic::requests::failure::Cause;
use crate::nic::responder::outcomes::{Refusal, Reply};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::{Doing, Due};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{
    Extensions, Headers, Nak, OpcodeInfo, Operation, Packet, Psn, Service, Syndrome,
};

impl QueuePair {
    /// Takes a request.
    #[inline(always)]
    pub fn respond<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        self.judge(packet, info, common);
        self.expect_usual();
    }

    /// Takes it, refuses it or passes it over.
    #[inline(always)]
    fn judge<P: Payload>(&mut self, packet: &Packet<P>, info: OpcodeInfo, common: &mut Common) {
        let bth = packet.headers.bth;
        if self.state != State::ReadyToSend && !self.responds(bth.psn(), common) {
            return;
        }
        let ahead = bth.psn().distance_from(self.responder.expected);
        if ahead != 0 && info.service == Service::Uc {
            if !self.goes_on(bth, ahead, common) {
                return;
            }
        } else if ahead < 0 && !planted(Bug::TakesDuplicates) {
            return self.repeat((packet.headers, info), common);
        } else if ahead > 0 && !planted(Bug::IgnoresGaps) {
            return self.miss((packet.headers, info), common);
        }
        match self.take(packet, info, common) {
            Ok(Reply::ByAck) => {
                self.took(packet.payload.len(), bth.ack_request(), info.service, common);
            }
            Ok(Reply::ByAnswer) => {
                self.responder.next();
                common.owe_answer(self);
            }
            Err(_) if info.service == Service::Uc && !planted(Bug::BreaksInsteadOfPassingOver) => {
                self.pass_over(bth, common);
            }
            Err(refusal) => self.refuse(refusal, common),
        }
    }

    /// Whether requests are taken in a state that is not the usual one.
    #[cold]
    fn responds(&mut self, psn: Psn, common: &mut Common) -> bool {
        if self.state == State::ReadyToReceive {
            self.meet(common);
        }
        if !self.state.responds() {
            common.counters.wrong_state += 1;
            // Whoever sends on an unreliable connection does not ask what became of it.
            if common.lossless && self.service() == Service::Rc {
                self.disown(psn, common);
            }
        }
        self.state.responds()
    }

    /// Refuses the request that was expected.
    #[cold]
    pub fn refuse(&mut self, refusal: Refusal, common: &mut Common) {
        match refusal {
            Refusal::NotReady => self.not_ready(common),
            Refusal::Fatal(nak, cause) => {
                common.counters.fatal_naks_sent += 1;
                common.owe(self, Due::Nak(Syndrome::nak(nak)));
                let blamed = match cause {
                    Cause::TooLong { .. } | Cause::LocalProtection { .. } => Blamed::Receive,
                    _ => Blamed::Nothing,
                };
                self.break_with(cause, blamed, common);
            }
        }
    }

    /// A request came again.
    #[cold]
    fn repeat(&mut self, (headers, info): (Headers, OpcodeInfo), common: &mut Common) {
        common.counters.duplicates += 1;
        if common.lossless {
            return self.disown(headers.bth.psn(), common);
        }
        match info.operation {
            Operation::ReadRequest => self.read_again(headers, common),
            Operation::CompareSwap | Operation::FetchAdd => {
                self.atomic_again(headers, common);
            }
            _ => common.owe(self, Due::Ack),
        }
    }

    /// Refuses a packet that a device which can't lose has delivered, and that is not taken: its
    /// sender would take it for done. If it is the one that is expected, who sent it has it under
    /// way, and understands a refusal of that. Any other is of a connection that is no more, for on
    /// such a device nothing comes twice or out of turn: its sender has to be found by its link.
    #[cold]
    fn disown(&mut self, psn: Psn, common: &mut Common) {
        if psn == self.responder.expected {
            common.owe(self, Due::Nak(Syndrome::nak(Nak::RemoteOperation)));
        } else if let Some(path) = &self.path {
            common.notify(path.id(), self.shared.qpn, psn);
        }
    }

    /// A packet came from beyond a gap.
    #[cold]
    fn miss(&mut self, (headers, info): (Headers, OpcodeInfo), common: &mut Common) {
        common.counters.out_of_sequence += 1;
        if common.lossless {
            return self.come_too_early(headers, info, common);
        }
        if !self.responder.refused || planted(Bug::RefusesEachPacket) {
            self.responder.refused = true;
            common.counters.sequence_naks_sent += 1;
            common.owe(self, Due::Nak(Syndrome::nak(Nak::SequenceError)));
        }
    }

    /// Where nothing is lost, packets that come too early are what the peer had sent behind a
    /// refused one before it heard of that, each of them the next of the one before; or not the
    /// peer's.
    fn come_too_early(&mut self, headers: Headers, info: OpcodeInfo, common: &mut Common) {
        let (psn, r) = (headers.bth.psn(), &mut self.responder);
        if r.refused && psn == r.beyond {
            // A read takes as many numbers as it asks for packets.
            let reads = info.operation == Operation::ReadRequest;
            r.beyond = psn.add(match headers.extensions {
                Extensions::Reth(reth) if reads => self.mtu.packets(reth.length.0),
                _ => 1,
            });
        } else {
            self.disown(psn, common);
        }
    }

    fn not_ready(&mut self, common: &mut Common) {
        self.responder.refused = true;
        self.responder.beyond = self.responder.expected.add(1);
        common.counters.rnr_naks_sent += 1;
        common.owe(self, Due::Nak(Syndrome::not_ready(self.responder.not_ready)));
    }

    /// Does as the expected packet says, or nothing at all.
    #[inline(always)]
    fn take<P: Payload>(
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
            Operation::Send => self.take_send(packet, info, common)?,
            Operation::Write => self.take_write(packet, common)?,
            _ if !matches!(self.responder.doing, Doing::Nothing) => return Err(Refusal::INVALID),
            Operation::ReadRequest => {
                self.take_read(packet.headers, &common.keys)?;
                return Ok(Reply::ByAnswer);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                self.take_atomic(packet.headers, &common.keys)?;
                return Ok(Reply::ByAnswer);
            }
            _ => return Err(Refusal::INVALID),
        }
        Ok(Reply::ByAck)
    }
}
