//! What asks for something: reads, atomic operations, and whether the peer is there.

use crate::encap::Full;
use crate::nic::common::Common;
use crate::nic::device::Outbox;
use crate::nic::pair::QueuePair;
use crate::nic::work::Operation;
use crate::wire::{
    AtomicEth, AtomicValue, Bth, DmaLength, Extensions, Headers, Opcode, RemoteAddr, Reth, Rkey,
};

use super::{MOST_UNDER_WAY, Requester, Stop, Turn};

/// The most packets of a read that are asked for at once, however wide the window is.
const LONGEST_PART: u32 = 1 << 21;

impl Requester {
    /// How many packets of a read are asked for at once: half a window, so that one half comes while
    /// the other is asked for. Parts begin at multiples of this, also when they are asked for again
    /// from their middle on, so that no repetition reaches further than what it repeats.
    fn part(&self) -> u32 {
        (self.sending.window / 2).clamp(1, LONGEST_PART)
    }
}

impl QueuePair {
    /// Sends the atomic operation or the part of a read at the cursor, which may be in the middle of
    /// one that was answered so far.
    #[inline(never)]
    pub(super) fn ask<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Stop> {
        let (r, mtu) = (&mut self.requester, self.mtu);
        let (part, first, under_way) = (r.part(), r.next == r.top, r.under_way());
        if first && r.asking >= r.sending.reads.into() || under_way + part > MOST_UNDER_WAY {
            return Err(Stop::Turn(Turn::Idle));
        }
        let mark = r.mark;
        let (Some(path), Some(posted)) = (&self.path, r.work.peek(r.at)) else {
            return Err(Stop::Turn(Turn::Idle));
        };
        let left = mtu.packets(posted.len) - r.packet;
        let packets = left.min(part - r.packet % part);
        let (opcode, extensions) = match posted.request.operation {
            Operation::CompareSwap { address, rkey, compare, swap } => {
                let (swap_or_add, compare) = (AtomicValue(swap), AtomicValue(compare));
                let atomic = AtomicEth { address, rkey, swap_or_add, compare };
                (Opcode::RcCompareSwap, Extensions::Atomic(atomic))
            }
            Operation::FetchAdd { address, rkey, add } => {
                let (swap_or_add, compare) = (AtomicValue(add), AtomicValue(0));
                let atomic = AtomicEth { address, rkey, swap_or_add, compare };
                (Opcode::RcFetchAdd, Extensions::Atomic(atomic))
            }
            Operation::Read { address, rkey } => {
                let at = r.packet * mtu.bytes() as u32;
                let address = RemoteAddr(address.0.wrapping_add(at.into()));
                let len = (posted.len - at).min(packets.saturating_mul(mtu.bytes() as u32));
                let reth = Reth { address, rkey, length: DmaLength(len) };
                (Opcode::RcReadRequest, Extensions::Reth(reth))
            }
            _ => return Err(Stop::Turn(Turn::Idle)),
        };
        let bth = Bth::new(opcode, self.peer, r.next).with_pkey(self.pkey);
        let ticket = outbox
            .push(path, Headers { bth, extensions }, &[][..])
            .map_err(|_| Stop::Turn(Turn::DeviceFull))?;
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(r.next != r.top);
        // The answer is the acknowledgement.
        r.sent(packets, true, packets == left, ticket, common.now);
        // Parts are no packets of a long message, which a device has to tell of.
        r.mark = mark;
        if first {
            r.asking += 1;
            r.parts += u32::from(packets < left);
        }
        self.watch(common);
        Ok(())
    }

    /// Sends a write of nothing, with the number before all that are not acknowledged. The peer takes
    /// it for a copy of one that it took long ago, and acknowledges that again.
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

    /// Takes the oldest packet as answered. Whether the request at the head is complete by that, for
    /// which it must be one that asks.
    pub fn answered_oldest(&mut self) -> bool {
        let part = self.requester.part();
        let r = &mut self.requester;
        (r.oldest, r.acknowledged) = (r.oldest.add(1), r.acknowledged + 1);
        let complete = r.acknowledged == r.packets(0, self.mtu);
        if complete || r.acknowledged.is_multiple_of(part) {
            r.asking = r.asking.saturating_sub(1);
        }
        if complete {
            r.acknowledged = 0;
        }
        complete
    }
}
