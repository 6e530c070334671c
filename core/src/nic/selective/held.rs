//! The packets that a receiver keeps until a missing one has come, and the memory for them.

use crate::nic::selective::REACH;
use crate::nic::selective::marks::Marks;
use crate::payload::Payload;
use crate::wire::{Headers, Packet, Psn, Report};

/// A packet that is kept.
pub(crate) struct HeldPacket {
    pub headers: Headers,
    pub payload: Vec<u8>,
}

/// The memory for the packets that all queue pairs of a NIC keep. It grows as packets are kept, to
/// `most` of them, and is used again. So much memory is not given back before the NIC is dropped.
pub(crate) struct HeldMemory {
    #[expect(clippy::vec_box, reason = "a queue pair's table of packets has places for pointers")]
    free: Vec<Box<HeldPacket>>,
    made: usize,
    most: usize,
}

impl HeldMemory {
    pub fn new(most: usize) -> Self {
        Self { free: Vec::new(), made: 0, most }
    }

    /// Copies a packet of a queue pair that keeps so many, if it may keep one more: no queue pair
    /// keeps more than are free, so that however many ask for all, there is some for another.
    fn keep<P: Payload>(&mut self, packet: &Packet<P>, kept: u32) -> Option<Box<HeldPacket>> {
        let headers = packet.headers;
        if kept as usize >= self.most - self.made + self.free.len() {
            return None;
        }
        let mut held = match self.free.pop() {
            Some(free) => free,
            None if self.made < self.most => {
                self.made += 1;
                Box::new(HeldPacket { headers, payload: Vec::new() })
            }
            None => return None,
        };
        held.headers = headers;
        held.payload.resize(packet.payload.len(), 0);
        packet.payload.copy_to(&mut held.payload);
        Some(held)
    }

    /// Takes the memory of a packet back.
    pub fn give_back(&mut self, held: Box<HeldPacket>) {
        self.free.push(held);
    }
}

/// Whether a packet from beyond a gap was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    Now,
    /// The packet was kept before.
    Before,
    /// The packet is too far beyond the gap, or there is no memory for it.
    NoRoom,
}

/// The packets that one queue pair keeps, by their sequence numbers.
pub(crate) struct Held {
    packets: Box<[Option<Box<HeldPacket>>]>,
    marks: Marks,
    /// The number behind the last packet that is kept.
    beyond: Psn,
}

impl Held {
    pub fn new() -> Self {
        let packets = (0..REACH).map(|_| None).collect();
        Self { packets, marks: Marks::NONE, beyond: Psn::new(0) }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Keeps a packet that is `ahead` numbers beyond the expected one.
    pub fn keep<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        ahead: u32,
        memory: &mut HeldMemory,
    ) -> Kept {
        let psn = packet.headers.bth.psn();
        if ahead >= REACH {
            return Kept::NoRoom;
        }
        if self.marks.has(psn) {
            return Kept::Before;
        }
        let kept = self.marks.count();
        let Some(held) = memory.keep(packet, kept) else { return Kept::NoRoom };
        if self.marks.is_empty() || psn.distance_from(self.beyond) >= 0 {
            self.beyond = psn.add(1);
        }
        self.marks.insert(psn);
        self.packets[(psn.get() % REACH) as usize] = Some(held);
        Kept::Now
    }

    /// Takes the packet with a number, if it is kept.
    pub fn take(&mut self, psn: Psn) -> Option<Box<HeldPacket>> {
        if !self.marks.remove(psn) {
            return None;
        }
        self.packets[(psn.get() % REACH) as usize].take()
    }

    /// Drops all packets whose numbers are before the expected one, which has moved on from `from`
    /// by so many.
    pub fn drop_range(&mut self, from: Psn, len: u32, memory: &mut HeldMemory) {
        for step in 0..len.min(REACH) {
            if self.is_empty() {
                return;
            }
            self.take(from.add(step)).into_iter().for_each(|held| memory.give_back(held));
        }
    }

    /// Drops all packets that the queue pair keeps.
    pub fn clear(&mut self, memory: &mut HeldMemory) {
        if self.is_empty() {
            return;
        }
        for held in self.packets.iter_mut().filter_map(Option::take) {
            memory.give_back(held);
        }
        self.marks.clear();
    }

    /// Writes a bit for each packet beyond the expected one, as a [`Report`] has them. Returns how
    /// many bytes that are.
    pub fn bits(&self, expected: Psn, bits: &mut [u8; Report::MOST_BITS / 8]) -> usize {
        if self.is_empty() {
            return 0;
        }
        let first = expected.add(1);
        let count = self.beyond.distance_from(first).clamp(0, REACH as i32 - 1) as u32;
        for step in (0..count).filter(|&step| self.marks.has(first.add(step))) {
            bits[step as usize / 8] |= 1 << (step % 8);
        }
        count.div_ceil(8) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Bth, Extensions, Opcode, Qpn};

    fn packet(psn: u32) -> Packet<&'static [u8]> {
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(7), Psn::new(psn));
        Packet { headers: Headers { bth, extensions: Extensions::None }, payload: &[1; 100] }
    }

    #[test]
    fn however_many_keep_all_that_they_may_there_is_room_for_another() {
        let mut memory = HeldMemory::new(4096);
        let mut kept_by = |greedy: u32| {
            let mut held = Held::new();
            let kept = (1..greedy)
                .take_while(|&ahead| held.keep(&packet(ahead), ahead, &mut memory) == Kept::Now);
            kept.count()
        };
        assert_eq!([kept_by(2000), kept_by(2000)], [1023, 1023]);
        let others: Vec<_> = (0..8).map(|_| kept_by(2000)).collect();
        assert_eq!(others[..3], [1023, 514, 257]);
        assert!(others.iter().all(|&kept| kept > 0), "{others:?}");
    }
}
