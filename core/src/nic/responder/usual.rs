//! What most packets are: a send or a write of one packet, the next that is expected.
//!
//! That takes a few comparisons to find out, in front of everything else that a packet is judged
//! by: nothing that is rare stands in the way then, and no more than what follows from them is
//! left out.

use crate::nic::common::Common;
use crate::nic::device::Flow;
use crate::nic::pair::QueuePair;
use crate::nic::states::State;
use crate::payload::Payload;
use crate::wire::{AfterBth, Bth, Imm, Opcode, Prediction, Psn, RawBth, Reth, Service};

use super::{Attachment, Doing, Refusal};

impl QueuePair {
    /// What usual packets are like in the state that it is in.
    pub fn likeness(&self) -> Prediction {
        // Two that are limited members of a partition may not talk.
        let talks = self.pkey.same_partition(self.pkey);
        if self.service() != Service::Rc || self.state != State::ReadyToSend || !talks {
            return Prediction::NONE;
        }
        let bth = Bth::new(Opcode::RcSendOnly, self.number(), Psn::new(0));
        Prediction::of(&bth.with_pkey(self.pkey))
    }

    /// Takes a packet that is a usual one. Whether it is.
    #[inline(always)]
    pub fn take_usual(
        &mut self,
        flow: Flow<'_>,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        if !self.comes_from_peer(flow) || bth.psn() != self.responder.expected {
            return false;
        }
        if bth.is(self.usual) {
            let Some(([], payload)) = behind.split() else { return false };
            self.take_usual_send(bth, payload, Attachment::Nothing, common)
        } else if bth.is(self.usual.with_opcode(Opcode::RcWriteOnly)) {
            self.take_usual_write(bth, behind, common)
        } else if bth.is(self.usual.with_opcode(Opcode::RcSendOnlyImmediate)) {
            self.take_usual_immediate(bth, behind, common)
        } else {
            false
        }
    }

    #[inline(always)]
    fn take_usual_send(
        &mut self,
        bth: RawBth,
        payload: impl Payload,
        attached: Attachment,
        common: &mut Common,
    ) -> bool {
        let len = payload.len();
        if len > self.mtu.bytes() {
            return false;
        }
        self.come(common);
        let taken = self.take_whole(payload, attached, bth.solicited(), common);
        self.took_usual(taken, len, bth, common);
        true
    }

    /// Apart, as the next one, so that each has the registers for itself.
    #[inline(never)]
    fn take_usual_immediate(
        &mut self,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        let Some((imm, payload)) = behind.split() else { return false };
        let imm = Imm(u32::from_be_bytes(imm));
        self.take_usual_send(bth, payload, Attachment::Imm(imm), common)
    }

    #[inline(never)]
    fn take_usual_write(
        &mut self,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        let Some((reth, payload)) = behind.split() else { return false };
        let len = payload.len();
        if len > self.mtu.bytes() {
            return false;
        }
        self.come(common);
        let taken = self.write_whole(Reth::from_bytes(reth), payload, &common.keys);
        self.took_usual(taken, len, bth, common);
        true
    }

    #[inline(always)]
    fn come(&mut self, common: &mut Common) {
        common.counters.received += 1;
        self.hear(common);
    }

    #[inline(always)]
    fn took_usual(
        &mut self,
        taken: Result<(), Refusal>,
        len: usize,
        bth: RawBth,
        common: &mut Common,
    ) {
        match taken {
            Ok(()) => {
                // Nothing was refused, and so there is no refusal to be taken back.
                self.responder.expected = bth.psn().add(1);
                self.owe_acknowledgement(len, bth.ack_request(), Service::Rc, common);
            }
            Err(refusal) => {
                self.refuse(refusal, common);
                self.expect_usual();
            }
        }
    }

    /// Sees whether the next packet can be a usual one: whenever something may have come into its
    /// way, or got out of it.
    #[inline(always)]
    pub fn expect_usual(&mut self) {
        let r = &self.responder;
        let clear = !r.refused && matches!(r.doing, Doing::Nothing) && r.kept.is_none();
        self.usual = if clear { self.alike } else { Prediction::NONE };
    }
}
