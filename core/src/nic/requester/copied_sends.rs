//! Copied sends: messages that are copied into the device when they are posted, and not kept. On a
//! lossless device, a packet that has left need not be sent again.
//!
//! Their entries are in the work queue like others, so that they are counted, completed and flushed
//! in their order, but without their bytes. Only a peer that has no receive for such a message asks
//! for it again: then the connection breaks, as if no retries were configured.

use crate::encap::{Full, Path};
use crate::nic::config::queue_pair_state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::queues::posted::Posted;
use crate::nic::queues::send_queue::SendQueue;
use crate::nic::requests::work_request::Copied;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::requester::Requester;
use crate::payload::Chain;
use crate::wire::{Bth, Extensions, Headers, Opcode, Psn, Service};

impl Copied<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.bytes.iter().map(|bytes| bytes.len()).sum()
    }

    /// Gives the message to the device, as one packet.
    #[inline(always)]
    fn push<O: Outbox>(&self, bth: Bth, path: &Path, outbox: &mut O) -> Result<u64, Full> {
        match (self.imm, self.bytes) {
            (None, [all, []]) => {
                outbox.push(path, Headers { bth, extensions: Extensions::None }, all)
            }
            _ => self.push_other(bth, path, outbox),
        }
    }

    /// Gives a message with immediate data, or in two parts, to the device. This is a function of
    /// its own, so that the path of the shortest messages stays short.
    #[inline(never)]
    fn push_other<O: Outbox>(&self, bth: Bth, path: &Path, outbox: &mut O) -> Result<u64, Full> {
        let (opcode, extensions) = match self.imm {
            None => (Opcode::RcSendOnly, Extensions::None),
            Some(imm) => (Opcode::RcSendOnlyImmediate, Extensions::Imm(imm)),
        };
        let headers = Headers { bth: bth.with_opcode(opcode), extensions };
        outbox.push(path, headers, Chain(self.bytes[0], self.bytes[1]))
    }
}

impl Requester {
    /// Whether a further message may be sent now: no request waits before it, the window is open,
    /// and the peer has a receive.
    #[inline(always)]
    fn can_send_copied(&mut self) -> bool {
        self.work.refresh();
        self.cursor == self.begun
            && self.next_psn == self.unsent_psn
            && self.work.seen_behind(self.cursor) == 0
            && self.resume_at.is_none()
            && self.under_way() < self.open_window
            && self.receives_left().is_none_or(|receives| receives > self.cursor as i32)
    }

    /// Whether the bytes of any request were not kept that was begun and stands behind `from`
    /// others.
    pub fn has_copied(&self, from: usize) -> bool {
        self.work.seen_range(from..self.begun).any(|posted| posted.unkept)
    }
}

impl QueuePair {
    /// Completes what was delivered, so that there is room in the work queue. A device often
    /// reports deliveries one look late, and so it is asked before there is no room at all.
    #[inline(never)]
    fn complete_delivered_early<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O) {
        let delivered = self.delivered_ticket(outbox);
        // The queue pair stays in the list of those with requests under way, whatever is left,
        // since it is about to send.
        if self.complete_delivered(delivered, common) > 0 {
            self.continue_after_progress(common);
        }
    }

    /// Sends a message that is not kept, if it can be sent now and as one packet. Returns whether
    /// it was sent.
    #[inline(always)]
    pub fn send_copied<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        message: &Copied<'_>,
        common: &mut Common,
        outbox: &mut O,
    ) -> bool {
        let ready = self.state == State::ReadyToSend && self.service() == Service::Rc;
        if !ready || message.len() > self.mtu.bytes() {
            return false;
        }
        if queue.is_short_of_room() {
            self.complete_delivered_early(common, outbox);
        }
        let r = &mut self.requester;
        let (Some(path), true) = (&self.path, r.can_send_copied()) else { return false };
        let Some(slot) = queue.slot_of_copied() else { return false };
        if common.reserve_up_to(self.send_completions, 1) == 0 {
            return false;
        }
        let bth = Bth::new(Opcode::RcSendOnly, self.peer_qpn, r.next_psn).with_pkey(self.pkey);
        let Ok(ticket) = message.push(bth, path, outbox) else {
            common.release_sends(self.send_completions, 1);
            return false;
        };
        let beyond: Psn = r.next_psn.add(1);
        slot.fill(Posted::unkept(message.signalled, ticket, beyond));
        r.work.refresh();
        (r.next_psn, r.unsent_psn) = (beyond, beyond);
        (r.cursor, r.begun) = (r.cursor + 1, r.begun + 1);
        common.counters.sent += 1;
        self.start_response_timer(common);
        true
    }
}
