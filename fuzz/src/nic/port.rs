//! The device: it takes as many packets as it is told to.

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::Outbox;
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Psn, Qpn};

use super::packets::{MTU, PAIRS, peer};

pub struct Port {
    /// How many more packets it takes.
    pub room: usize,
    /// How many it took since that was last asked.
    pub pushed: usize,
    /// The newest request that went along each path.
    pub sent: [Psn; PAIRS],
    tickets: [u64; PAIRS],
    pub delivered: [u64; PAIRS],
}

impl Port {
    pub fn new() -> Self {
        let sent = [Psn::new(0); PAIRS];
        Self { room: 0, pushed: 0, sent, tickets: [0; PAIRS], delivered: [0; PAIRS] }
    }

    /// The peer has taken everything that left along a path, but for some.
    pub fn deliver(&mut self, path: usize, all_but: u64) {
        let taken = self.tickets[path].saturating_sub(all_but);
        self.delivered[path] = self.delivered[path].max(taken);
    }
}

impl Outbox for Port {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let Some(room) = self.room.checked_sub(1) else { return Err(Full) };
        self.room = room;
        self.pushed += 1;
        let index = path.id().0 as usize;
        let (bth, info) = (&headers.bth, headers.bth.opcode().info());
        // What is told to the link itself is for queue pair 0.
        let notice = bth.destination() == Qpn::new(0) && info.is_response();
        let right = notice || bth.destination() == peer(index);
        assert!(right, "each path leads to its own peer: {headers:?}");
        assert!(info.payload.allows(payload.len(), MTU.bytes()), "{headers:?}");
        payload.copy_to(&mut [0; 256][..payload.len()]);
        if !info.is_response() {
            self.sent[index] = bth.psn();
        }
        self.tickets[index] += 1;
        Ok(self.tickets[index])
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, path: PathId) -> u64 {
        self.delivered[path.0 as usize]
    }
}
