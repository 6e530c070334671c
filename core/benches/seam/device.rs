//! What the NIC sees of a device, and a device of the NIC.

use std::os::fd::RawFd;

use doorbell_core::encap::{Full, Outer, Path};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Malformed, Packet};

/// Where a NIC's packets go. Packets along one path that follow each other share a frame where
/// the device can do that; the NIC need not know.
pub trait Outbox {
    /// Encodes a packet in the device's memory. Its ticket is compared with
    /// [`delivered`](Self::delivered) on a lossless device.
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full>;

    /// Everything pushed leaves.
    fn flush(&mut self);

    /// The ticket of the last packet that the peer has taken: a lossless device's acknowledgement.
    fn delivered(&mut self) -> u64;
}

/// Where a device's packets go.
pub trait Inbox {
    /// A packet, its ICRC found right.
    fn packet<P: Payload>(&mut self, flow: Flow, packet: &Packet<P>);

    /// Bytes that were no packet.
    fn malformed(&mut self, why: Malformed);
}

/// Where a packet came from and went to.
#[derive(Clone, Copy)]
pub enum Flow<'o> {
    /// A wire between two processes has no addresses.
    Wire,
    /// The number changes when the addresses do, so that they need be judged only then.
    Network(u64, &'o Outer),
}

pub trait Device: Outbox + Send + 'static {
    /// Whether frames can't be lost, repeated or reordered on the way.
    const LOSSLESS: bool;

    /// Hands a burst of packets to `inbox`; the number of frames that they came in.
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize;

    /// What becomes readable when there is something to receive, once armed.
    fn readiness(&self) -> RawFd;

    /// Called before sleeping: from here on a frame makes the descriptor readable.
    fn arm(&mut self);

    /// Called after waking.
    fn disarm(&mut self);
}

/// How many frames to take in one turn: one, and twice as many each time that all of them were
/// there.
///
/// To look for another frame is to fetch a cache line that the other processor has, and whoever
/// waits for the first one waits for that, too. In a stream the line is there already.
pub struct Burst {
    allowed: usize,
}

impl Burst {
    const MOST: usize = 64;

    pub fn new() -> Self {
        Self { allowed: 1 }
    }

    /// Takes frames by `take`, which says whether there was one; returns how many there were.
    #[inline]
    pub fn take(&mut self, mut take: impl FnMut() -> bool) -> usize {
        let mut taken = 0;
        while taken < self.allowed && take() {
            taken += 1;
        }
        self.allowed = if taken == self.allowed { (2 * taken).min(Self::MOST) } else { 1 };
        taken
    }
}
