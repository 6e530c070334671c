//! The responder's fast path: a send or a write of one packet that is the next expected one. Most
//! packets that are received are of this kind.
//!
//! A few comparisons tell, before everything else that a packet is checked for. So nothing that is
//! rare stands in the way, and nothing is left out but what follows from these comparisons.

use crate::nic::device::flow::Flow;
use crate::nic::requests::work_request::Attachment;
use crate::nic::responder::outcomes::Refusal;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::payload::Payload;
use crate::wire::{AfterBth, Imm, Opcode, RawBth, Reth, Service};

impl QueuePair {
    /// Takes a packet if it is one for the fast path. Returns whether it was.
    #[inline(always)]
    pub fn receive_fast_path(
        &mut self,
        flow: Flow<'_>,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        self.is_known_flow(flow) && self.take_fast_path(bth, behind, common)
    }

    /// Takes a packet that is known to come by the connection, if it is one for the fast path.
    /// Returns whether it was.
    #[inline(always)]
    pub fn take_fast_path(
        &mut self,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        if bth.psn() != self.responder.expected_psn {
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

    /// Takes a send of one packet.
    #[inline(always)]
    fn fast_path_send(
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
        self.count_received(common);
        let executed = self.execute_whole_send(payload, attached, bth.solicited(), common);
        self.finish_fast_path(executed, len, bth, common);
        true
    }

    /// Takes a send of one packet with immediate data. This is a function of its own, as the next
    /// one is, so that each has the registers for itself.
    #[inline(never)]
    fn fast_path_send_immediate(
        &mut self,
        bth: RawBth,
        behind: impl AfterBth,
        common: &mut Common,
    ) -> bool {
        let Some((imm, payload)) = behind.split() else { return false };
        let imm = Imm(u32::from_be_bytes(imm));
        self.fast_path_send(bth, payload, Attachment::Imm(imm), common)
    }

    /// Takes a write of one packet.
    #[inline(never)]
    fn fast_path_write(&mut self, bth: RawBth, behind: impl AfterBth, common: &mut Common) -> bool {
        let Some((reth, payload)) = behind.split() else { return false };
        let len = payload.len();
        if len > self.mtu.bytes() {
            return false;
        }
        self.count_received(common);
        let executed = self.execute_whole_write(Reth::from_bytes(reth), payload, &common.keys);
        self.finish_fast_path(executed, len, bth, common);
        true
    }

    #[inline(always)]
    fn count_received(&mut self, common: &mut Common) {
        common.counters.received += 1;
        self.note_heard(common);
    }

    /// Sees to the acknowledgement of a packet that was executed, or to its NAK.
    #[inline(always)]
    fn finish_fast_path(
        &mut self,
        executed: Result<(), Refusal>,
        len: usize,
        bth: RawBth,
        common: &mut Common,
    ) {
        match executed {
            Ok(()) => {
                // On the fast path no NAK is owed, and so there is none to take back.
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
