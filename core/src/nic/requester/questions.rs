//! What asks for something: reads, atomic operations, and whether the peer is there.

use crate::encap::Full;
use crate::nic::common::Common;
use crate::nic::device::Outbox;
use crate::nic::pair::QueuePair;
use crate::nic::work::{Operation, Plain};
use crate::wire::{
    AtomicEth, AtomicValue, Bth, DmaLength, Extensions, Headers, Opcode, RemoteAddr, Reth, Rkey,
};

use super::packets::{Any, Shape};
use super::{MOST_UNDER_WAY, Requester, Stop, Turn};

/// The most packets of a read that are asked for at once, however wide the window is.
const LONGEST_PART: u32 = 1 << 21;

impl Requester {
    /// How many packets of a read are asked for at once: half a window, so that one half comes
    /// while the other is asked for. Parts begin at multiples of this, also when they are asked for
    /// again from their middle on, so that no repetition reaches further than what it repeats.
    fn part(&self) -> u32 {
        (self.insists.window / 2).clamp(1, LONGEST_PART)
    }
}

impl QueuePair {
    /// Sends what asks for something, whatever it is.
    #[inline(never)]
    pub(super) fn ask_apart<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Stop> {
        self.ask::<Any, O>(common, outbox)
    }

    /// Sends the atomic operation or the part of a read at the cursor, which may be in the middle
    /// of one that was answered so far; not if it is plain: that is asked for the first time, and
    /// all of it is one packet.
    #[inline(always)]
    pub(super) fn ask<S: Shape, O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Stop> {
        let (plain, r, mtu) = (S::PLAIN.is_some(), &mut self.requester, self.mtu);
        let (part, first) = if plain { (1, true) } else { (r.part(), r.next == r.top) };
        let under_way = r.under_way();
        if first && r.asking >= r.insists.reads.into() || under_way + part > MOST_UNDER_WAY {
            return Err(Stop::Turn(Turn::Idle));
        }
        let (Some(path), Some(posted)) = (&self.path, r.work.peek(r.at)) else {
            return Err(Stop::Turn(Turn::Idle));
        };
        let (left, packets) = match plain {
            true => (1, 1),
            false => {
                let left = mtu.packets(posted.len) - r.packet;
                (left, left.min(part - r.packet % part))
            }
        };
        let bth = Bth::new(Opcode::RcReadRequest, self.peer, r.next).with_pkey(self.pkey);
        let pushed = match (S::PLAIN, posted.request.operation) {
            (None | Some(Plain::Read), Operation::Read { address, rkey }) => {
                let at = if plain { 0 } else { r.packet * mtu.bytes() as u32 };
                let address = RemoteAddr(address.0.wrapping_add(at.into()));
                let len = (posted.len - at).min(packets.saturating_mul(mtu.bytes() as u32));
                let reth = Reth { address, rkey, length: DmaLength(len) };
                outbox.push(path, Headers { bth, extensions: Extensions::Reth(reth) }, &[][..])
            }
            (None | Some(Plain::Atomic), operation) => {
                let Some((opcode, atomic)) = atomic(operation) else {
                    return Err(Stop::Turn(Turn::Idle));
                };
                let (bth, extensions) = (bth.with_opcode(opcode), Extensions::Atomic(atomic));
                outbox.push(path, Headers { bth, extensions }, &[][..])
            }
            _ => return Err(Stop::Turn(Turn::Idle)),
        };
        let ticket = pushed.map_err(|_| Stop::Turn(Turn::DeviceFull))?;
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(!first);
        let mark = r.mark;
        // The answer is the acknowledgement, where there are any.
        r.sent(packets, !common.lossless, packets == left, ticket, common.now);
        // Parts are no packets of a long message, which a device has to tell of.
        (r.mark, r.reaches) = (mark, r.next);
        if first {
            r.asking += 1;
            r.parts = r.parts.wrapping_add(u32::from(packets < left));
        }
        self.watch(common);
        Ok(())
    }

    /// Sends a write of nothing, with the number before all that are not acknowledged. The peer
    /// takes it for a copy of one that it took long ago, and acknowledges that again.
    #[cold]
    pub fn ask_whether_there<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Full> {
        if let Some(path) = &self.path {
            let (address, rkey, length) = (RemoteAddr(0), Rkey(0), DmaLength(0));
            let psn = self.requester.oldest.before();
            let bth = Bth::new(Opcode::RcWriteOnly, self.peer, psn).with_pkey(self.pkey);
            let headers = Headers {
                bth: bth.with_ack_request(true),
                extensions: Extensions::Reth(Reth { address, rkey, length }),
            };
            outbox.push(path, headers, &[][..])?;
            common.counters.sent += 1;
            common.counters.questions_sent += 1;
        }
        self.responder.asks = false;
        Ok(())
    }

    /// Asks again for the oldest answer, once.
    #[cold]
    pub(super) fn chase(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if r.chased == Some(r.oldest) {
            return;
        }
        r.chased = Some(r.oldest);
        common.counters.answers_missed += 1;
        if !self.gave_up(common) {
            self.go_back(self.requester.oldest, common);
        }
    }

    /// How many bytes of the read at the head have come.
    pub fn read_so_far(&self) -> usize {
        self.requester.acknowledged as usize * self.mtu.bytes()
    }

    /// Takes the oldest packet as answered. Whether the request at the head, of `len` bytes, is
    /// complete by that, for which it must be one that asks.
    #[inline]
    pub fn answered_oldest(&mut self, len: u32) -> bool {
        let r = &mut self.requester;
        (r.oldest, r.acknowledged) = (r.oldest.add(1), r.acknowledged + 1);
        let complete = r.acknowledged == self.mtu.packets(len);
        if complete || r.acknowledged.is_multiple_of(r.part()) {
            r.asking = r.asking.saturating_sub(1);
        }
        if complete {
            r.acknowledged = 0;
        }
        complete
    }
}

/// What an atomic operation is on the wire.
#[inline(always)]
fn atomic(operation: Operation) -> Option<(Opcode, AtomicEth)> {
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
