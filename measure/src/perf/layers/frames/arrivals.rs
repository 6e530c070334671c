//! Checking every packet that arrives over a device.

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Malformed, Opcode, Packet, Psn, Qpn};

use super::shape::Shape;
use crate::perf::shared::ledger::{Ledger, Report};
use crate::perf::shared::pattern::Pattern;

/// Takes packets that are numbered from zero on, each of which carries what the [`Pattern`] has for
/// its number; and reports.
pub struct Arrivals {
    own: Qpn,
    shape: Shape,
    pattern: Pattern,
    copy: Box<[u8]>,
    pub ledger: Ledger,
    /// Whether anything has come from the other end.
    pub heard: bool,
}

impl Arrivals {
    pub fn new(own: Qpn, shape: Shape) -> Self {
        Self {
            own,
            shape,
            pattern: Pattern::new(shape.mtu),
            copy: vec![0; shape.mtu].into(),
            ledger: Ledger::default(),
            heard: false,
        }
    }

    /// The queue pair number that is spoken to here.
    pub fn own(&self) -> Qpn {
        self.own
    }

    /// How many whole messages have come.
    #[inline]
    pub fn messages(&self) -> u64 {
        match self.shape.packets {
            1 => self.ledger.here.next,
            packets => self.ledger.here.next / packets,
        }
    }

    /// Returns whether a payload is that of the packet with this number.
    #[inline]
    fn is_right(&mut self, number: u64, payload: impl Payload) -> bool {
        let len = self.shape.len(number);
        if payload.len() != len {
            return false;
        }
        let right = self.pattern.of(number, len);
        if let Ok(right) = right.try_into() {
            // Of the length that latencies are told of, it is looked at as words.
            return is_pair(payload, right);
        }
        payload.copy_to(&mut self.copy[..len]);
        self.copy[..len] == *right
    }

    fn hear(&mut self, payload: impl Payload) {
        let mut report = [0; size_of::<Report>()];
        if payload.len() == report.len() {
            payload.copy_to(&mut report);
            self.ledger.hear(&report);
        }
    }
}

/// Whether a payload is these two words.
#[inline]
fn is_pair(payload: impl Payload, right: [u8; 16]) -> bool {
    let mut copy = [0; 16];
    payload.copy_to(&mut copy);
    u128::from_ne_bytes(copy) == u128::from_ne_bytes(right)
}

impl Inbox for Arrivals {
    #[inline]
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        let bth = &packet.headers.bth;
        if bth.destination() != self.own {
            return; // a stranger's
        }
        self.heard = true;
        if bth.opcode() == Opcode::RcSendOnlyImmediate {
            return self.hear(packet.payload);
        }
        let next = self.ledger.here.next;
        let expected = Psn::new(next as u32);
        let number = match bth.psn() {
            psn if psn == expected => next,
            psn => next.saturating_add_signed(psn.distance_from(expected).into()),
        };
        if bth.ack_request() {
            // Not one of those that are counted: it bears the number of the next one.
            self.ledger.here.skip(number);
            self.ledger.asked = true;
        } else {
            let right = self.is_right(number, packet.payload);
            self.ledger.here.enter(number, right);
        }
        self.ledger.ended |= bth.solicited();
    }

    /// Ignores a malformed frame. If it was one of the test's, its message will be missing.
    fn malformed(&mut self, _: Malformed) {}

    fn gone(&mut self, _: PathId) {}
}

#[cfg(test)]
mod tests {
    use doorbell_core::wire::{Bth, Extensions, Headers, PathMtu};

    use super::*;

    #[test]
    fn a_packet_that_is_not_what_was_sent_is_counted() {
        for size in [1, 8, 16, 17, 64] {
            let (own, shape) = (Qpn::new(7), Shape::new(size, PathMtu::Mtu1024).expect("a shape"));
            let mut arrivals = Arrivals::new(own, shape);
            let pattern = Pattern::new(shape.mtu);
            let mut send = |number: u32, payload: &[u8]| {
                let bth = Bth::new(Opcode::RcSendOnly, own, Psn::new(number));
                let headers = Headers { bth, extensions: Extensions::None };
                arrivals.packet(Flow::Link(PathId(0)), &Packet { headers, payload });
                (arrivals.ledger.here.right, arrivals.ledger.here.wrong)
            };
            assert_eq!(send(0, pattern.of(0, size)), (1, 0));
            for (number, at) in [(1, 0), (2, size - 1)] {
                let mut changed = pattern.of(number, size).to_vec();
                changed[at] ^= 1;
                assert_eq!(send(number as u32, &changed), (1, number));
            }
            assert_eq!(send(3, &pattern.of(3, size)[1..]), (1, 3));
            assert_eq!(send(4, pattern.of(4, size)), (2, 3));
        }
    }
}
