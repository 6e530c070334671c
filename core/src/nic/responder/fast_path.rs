//! What most packets are: a send or a write of one packet, the next that is expected.
//!
//! That takes a few comparisons to find out, in front of everything else that a packet is judged
//! by: nothing that is rare stands in the way then, and no more than what follows from them is
//! left out.

use crate::nic::device::flow::Flow;
use crate::nic::requests::work_request::Attachment;
use crate::nic::responder::outcomes::Refusal;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::payload::Payload;
use crate::wire::{Behind, Glance, Imm, Opcode, Reth, Service};

impl QueuePair {
    /// Takes a packet that is a usual one. Whether it is.
    #[inline(always)]
    pub fn take_usual(
        &mut self,
        flow: Flow<'_>,
        bth: Glance,
        behind: impl Behind,
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
        bth: Glance,
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
        bth: Glance,
        behind: impl Behind,
        common: &mut Common,
    ) -> bool {
        let Some((imm, payload)) = behind.split() else { return false };
        let imm = Imm(u32::from_be_bytes(imm));
        self.take_usual_send(bth, payload, Attachment::Imm(imm), common)
    }

    #[inline(never)]
    fn take_usual_write(&mut self, bth: Glance, behind: impl Behind, common: &mut Common) -> bool {
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
        bth: Glance,
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
}
