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
    pub fn receive_fast_path(
        &mut self,
        flow: Flow<'_>,
        bth: Glance,
        behind: impl Behind,
        common: &mut Common,
    ) -> bool {
        if !self.is_known_flow(flow) || bth.psn() != self.responder.expected_psn {
            return false;
        }
        if bth.is(self.expected_likeness) {
            let Some(([], payload)) = behind.split() else { return false };
            self.fast_path_send(bth, payload, Attachment::Nothing, common)
        } else if bth.is(self.expected_likeness.with_opcode(Opcode::RcWriteOnly)) {
            self.fast_path_write(bth, behind, common)
        } else if bth.is(self.expected_likeness.with_opcode(Opcode::RcSendOnlyImmediate)) {
            self.fast_path_send_immediate(bth, behind, common)
        } else {
            false
        }
    }

    #[inline(always)]
    fn fast_path_send(
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
        self.count_received(common);
        let taken = self.execute_whole_send(payload, attached, bth.solicited(), common);
        self.finish_fast_path(taken, len, bth, common);
        true
    }

    /// Apart, as the next one, so that each has the registers for itself.
    #[inline(never)]
    fn fast_path_send_immediate(
        &mut self,
        bth: Glance,
        behind: impl Behind,
        common: &mut Common,
    ) -> bool {
        let Some((imm, payload)) = behind.split() else { return false };
        let imm = Imm(u32::from_be_bytes(imm));
        self.fast_path_send(bth, payload, Attachment::Imm(imm), common)
    }

    #[inline(never)]
    fn fast_path_write(&mut self, bth: Glance, behind: impl Behind, common: &mut Common) -> bool {
        let Some((reth, payload)) = behind.split() else { return false };
        let len = payload.len();
        if len > self.mtu.bytes() {
            return false;
        }
        self.count_received(common);
        let taken = self.execute_whole_write(Reth::from_bytes(reth), payload, &common.keys);
        self.finish_fast_path(taken, len, bth, common);
        true
    }

    #[inline(always)]
    fn count_received(&mut self, common: &mut Common) {
        common.counters.received += 1;
        self.note_heard(common);
    }

    #[inline(always)]
    fn finish_fast_path(
        &mut self,
        taken: Result<(), Refusal>,
        len: usize,
        bth: Glance,
        common: &mut Common,
    ) {
        match taken {
            Ok(()) => {
                // Nothing was refused, and so there is no refusal to be taken back.
                self.responder.expected_psn = bth.psn().add(1);
                self.owe_acknowledgement(len, bth.ack_request(), Service::Rc, common);
            }
            Err(refusal) => {
                self.refuse_request(refusal, common);
                self.update_expected_likeness();
            }
        }
    }
}
