//! Reads and atomic operations: how they are requested, and how their responses are counted.

use crate::nic::device::outbox::Outbox;
use crate::nic::requester::packets::{Any, Shape};
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::Operation;
use crate::nic::selective::marks::Marks;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::{MOST_UNDER_WAY, NotSent, RequesterTurn};
use crate::wire::{
    AtomicEth, AtomicValue, Bth, DmaLength, Extensions, Headers, Opcode, PathMtu, Psn, RemoteAddr,
    Reth, Rkey,
};

/// The most requests of a part that are under way at a time, where it is requested by and by.
const MOST_OF_PART: u32 = 4;

impl Requester {
    /// How many packets of a read are requested at once. Parts begin at multiples of this, also when they are requested
    /// again from their middle on, so that no repetition reaches further than what it repeats.
    pub(crate) fn packets_per_read_part(&self) -> u32 {
        self.policy.read_part
    }

    /// How many packets of a read are requested at once now. Where the window is smaller than a
    /// part, that is half a window, one after the other, if the peer serves so many reads at a time.
    fn most_requested(&self) -> u32 {
        let serves = self.reads_outstanding + MOST_OF_PART <= self.policy.reads.into();
        match &self.control {
            Some(control) if serves => (control.window() / 2).max(1),
            _ => u32::MAX,
        }
    }

    /// Notes that so many packets are requested together from `first` on, of the `whole` part.
    #[inline]
    fn note_requested(&mut self, first: Psn, packets: u32, whole: u32) {
        if let Some(control) = &mut self.control
            && (packets < whole || control.begins.is_some())
        {
            let begins = control.begins.get_or_insert_with(|| Box::new(Marks::NONE));
            begins.remove_range(first, packets);
            begins.insert(first);
        }
    }

    /// How many packets were requested together with `psn`, from it on: the read's packet number
    /// `packet` of so many.
    pub(crate) fn requested_with(&self, psn: Psn, packet: u32, packets: u32) -> u32 {
        let part = self.packets_per_read_part();
        let whole = (packets - packet).min(part - packet % part);
        let others = |begins: &Marks| (1..whole).find(|step| begins.has(psn.add(*step)));
        let control = self.control.as_ref();
        control.and_then(|control| control.begins.as_deref()).and_then(others).unwrap_or(whole)
    }
}

impl QueuePair {
    /// Sends the request packet of a read or an atomic operation that need not be plain.
    #[inline(never)]
    pub(crate) fn send_any_read_or_atomic<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), NotSent> {
        self.send_read_or_atomic::<Any, O>(common, outbox)
    }

    /// Sends the request packet of the atomic operation, or the part of a read, at the cursor. The
    /// part may begin in the middle of one that was partly answered. A plain one is requested for
    /// the first time, and has one packet.
    #[inline(always)]
    pub(crate) fn send_read_or_atomic<S: Shape, O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), NotSent> {
        let (plain, r, mtu) = (S::PLAIN.is_some(), &mut self.requester, self.mtu);
        let (part, first) =
            if plain { (1, true) } else { (r.packets_per_read_part(), r.next_psn == r.unsent_psn) };
        let (under_way, begins_part) = (r.under_way(), r.cursor_packet.is_multiple_of(part));
        if first && begins_part && r.reads_outstanding >= r.policy.reads.into()
            || under_way + part > MOST_UNDER_WAY.min(r.span())
        {
            return Err(NotSent::TurnEnded(RequesterTurn::Idle));
        }
        let began = r.begins_to_send(outbox, common.now);
        let most = if plain { 1 } else { r.most_requested() };
        let (Some(path), Some(posted)) = (&self.path, r.work.peek(r.cursor)) else {
            return Err(NotSent::TurnEnded(RequesterTurn::Idle));
        };
        let (left, packets) = match plain {
            true => (1, 1),
            false => {
                let left = mtu.packets(posted.len) - r.cursor_packet;
                (left, left.min(part - r.cursor_packet % part).min(most))
            }
        };
        let bth = Bth::new(Opcode::RcReadRequest, self.peer_qpn, r.next_psn).with_pkey(self.pkey);
        let mut asked = 0;
        let pushed = match (S::PLAIN, posted.request.operation) {
            (None | Some(Plain::Read), Operation::Read { address, rkey }) => {
                let packet = if plain { 0 } else { r.cursor_packet };
                let reth = read_part((address, rkey), posted.len, packet, packets, mtu);
                asked = reth.length.0 as usize;
                let bth = bth.with_ack_request(first && r.asks_when_read_came(asked));
                outbox.push(path, Headers { bth, extensions: Extensions::Reth(reth) }, &[][..])
            }
            (None | Some(Plain::Atomic), operation) => {
                let Some((opcode, atomic)) = atomic(operation) else {
                    return Err(NotSent::TurnEnded(RequesterTurn::Idle));
                };
                let (bth, extensions) = (bth.with_opcode(opcode), Extensions::Atomic(atomic));
                outbox.push(path, Headers { bth, extensions }, &[][..])
            }
            _ => return Err(NotSent::TurnEnded(RequesterTurn::Idle)),
        };
        let ticket = pushed.map_err(|_| NotSent::TurnEnded(RequesterTurn::DeviceFull))?;
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(!first);
        if first {
            r.note_sent(r.next_psn, asked, began);
            if !plain {
                r.note_requested(r.next_psn, packets, left.min(part - r.cursor_packet % part));
            }
        }
        let mark = r.mid_message_ticket;
        // The response is the acknowledgement, on devices that have any.
        r.advance_cursor(packets, !common.lossless, packets == left, ticket, common.now);
        // A part of a read is no packet in the middle of a message, of which a lossless device has
        // to report the delivery.
        (r.mid_message_ticket, r.last_memory_psn) = (mark, r.next_psn);
        if first {
            r.reads_outstanding += u32::from(begins_part);
            r.msn_offset = r.msn_offset.wrapping_add(u32::from(packets < left));
        }
        self.start_response_timer(common);
        Ok(())
    }

    /// How many bytes of the read at the head have come.
    pub fn bytes_read(&self) -> usize {
        self.requester.head_acknowledged as usize * self.mtu.bytes()
    }

    /// Notes that the oldest packet was answered. Returns whether the request at the head, a read
    /// or an atomic operation of `len` bytes, is complete by that.
    #[inline]
    pub fn oldest_response_received(&mut self, len: u32) -> bool {
        let r = &mut self.requester;
        (r.oldest_psn, r.head_acknowledged) = (r.oldest_psn.add(1), r.head_acknowledged + 1);
        let complete = r.head_acknowledged == self.mtu.packets(len);
        if complete || r.head_acknowledged.is_multiple_of(r.packets_per_read_part()) {
            r.reads_outstanding = r.reads_outstanding.saturating_sub(1);
        }
        if complete {
            r.head_acknowledged = 0;
        }
        complete
    }
}

/// Returns the header that requests `packets` of a read of `len` bytes from one of them on.
#[inline(always)]
pub(crate) fn read_part(
    (address, rkey): (RemoteAddr, Rkey),
    len: u32,
    packet: u32,
    packets: u32,
    mtu: PathMtu,
) -> Reth {
    let mtu = mtu.bytes() as u32;
    let at = packet * mtu;
    let address = RemoteAddr(address.0.wrapping_add(at.into()));
    Reth { address, rkey, length: DmaLength((len - at).min(packets.saturating_mul(mtu))) }
}

/// Returns the opcode and the header of an atomic operation.
#[inline(always)]
pub(crate) fn atomic(operation: Operation) -> Option<(Opcode, AtomicEth)> {
    let (opcode, address, rkey, swap_or_add, compare) = match operation {
        Operation::CompareSwap { address, rkey, compare, swap } => {
            (Opcode::RcCompareSwap, address, rkey, swap, compare)
        }
        Operation::FetchAdd { address, rkey, add } => (Opcode::RcFetchAdd, address, rkey, add, 0),
        _ => return None,
    };
    let (swap_or_add, compare) = (AtomicValue(swap_or_add), AtomicValue(compare));
    Some((opcode, AtomicEth { address, rkey, swap_or_add, compare }))
}
