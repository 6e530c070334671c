//! Checking every packet that arrives.

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Malformed, Packet, Psn, Qpn};

use super::link::Shape;
use crate::perf::pattern::Pattern;

/// Takes packets that are numbered from zero on, each of which carries what the [`Pattern`] has for
/// its number.
pub struct Checker {
    own: Qpn,
    shape: Shape,
    pattern: Pattern,
    copy: Box<[u8]>,
    tally: Tally,
    /// Whether the other end asks how far this one is.
    pub asked: bool,
    /// Whether the last packet has come.
    pub ended: bool,
}

/// What became of the packets so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Those that came, in their order, and were what they should be.
    pub right: u64,
    /// Those that others overtook, or that never came.
    pub lost: u64,
    /// Those whose contents or length were others, that came late or twice, or were no packets.
    pub wrong: u64,
    /// The number that the next one will have.
    pub next: u64,
}

impl Tally {
    /// Nothing but what is right.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.wrong == 0
    }
}

impl Checker {
    pub fn new(own: Qpn, shape: Shape) -> Self {
        Self {
            own,
            shape,
            pattern: Pattern::new(shape.mtu),
            copy: vec![0; shape.mtu].into(),
            tally: Tally::default(),
            asked: false,
            ended: false,
        }
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// How many whole messages have come.
    #[inline]
    pub fn messages(&self) -> u64 {
        match self.shape.packets {
            1 => self.tally.next,
            packets => self.tally.next / packets,
        }
    }

    /// Whether this is what the packet of a number carries.
    #[inline]
    fn is_right(&mut self, number: u64, payload: impl Payload) -> bool {
        let len = self.shape.len(number);
        if payload.len() != len {
            return false;
        }
        payload.copy_to(&mut self.copy[..len]);
        self.copy[..len] == *self.pattern.of(number, len)
    }
}

impl Inbox for Checker {
    #[inline]
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        let bth = &packet.headers.bth;
        if bth.destination() != self.own {
            return; // a stranger's
        }
        let next = self.tally.next;
        let ahead = bth.psn().distance_from(Psn::new(next as u32));
        if bth.ack_request() {
            // Not one of those that are counted: it bears the number of the next one.
            self.tally.lost += u64::from(ahead.max(0).unsigned_abs());
            self.tally.next += u64::from(ahead.max(0).unsigned_abs());
            self.asked = true;
            self.ended |= bth.solicited();
            return;
        }
        if ahead < 0 {
            self.tally.wrong += 1;
            return;
        }
        let number = next + u64::from(ahead.unsigned_abs());
        self.tally.lost += number - next;
        self.tally.next = number + 1;
        match self.is_right(number, packet.payload) {
            true => self.tally.right += 1,
            false => self.tally.wrong += 1,
        }
        self.ended |= bth.solicited();
    }

    fn malformed(&mut self, _: Malformed) {
        self.tally.wrong += 1;
    }

    fn gone(&mut self, _: PathId) {}
}
