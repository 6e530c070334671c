//! What a look at a header tells, without judging it.

use super::bth::Bth;
use super::numbers::{Psn, Qpn};
use super::opcode::Opcode;

/// A base transport header that was not judged: of all packets of one kind in a flow, it tells by
/// one comparison whether this is another of them.
#[derive(Clone, Copy, Debug)]
pub struct RawBth {
    /// All but the last word, the first byte in the low bits.
    steady: u64,
    last: u32,
}

/// What the packets of one kind in a flow have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prediction(u64);

/// What is compared: opcode, version, partition, destination. What else there is in those bytes,
/// each packet has for itself, or it means nothing.
const COMPARED: u64 = u64::from_le_bytes([0xFF, 0x0F, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF]);

impl Prediction {
    /// That of no packet.
    pub const NONE: Self = Self(!COMPARED);

    /// That of packets with headers like this one.
    pub fn of(bth: &Bth) -> Self {
        Self(u64::from_le_bytes(bth.steady()) & COMPARED)
    }

    /// That of packets which differ from these by their opcode alone; of none, none's.
    #[inline(always)]
    pub const fn with_opcode(self, opcode: Opcode) -> Self {
        Self(self.0 & !0xFF | opcode.code() as u64)
    }
}

impl RawBth {
    /// Of a header that begins with these bytes, and ends with those.
    #[inline(always)]
    pub(crate) fn new(steady: [u8; 8], last: [u8; 4]) -> Self {
        Self { steady: u64::from_le_bytes(steady), last: u32::from_be_bytes(last) }
    }

    /// Whether this is a header like that.
    #[inline(always)]
    pub(crate) fn is(self, likeness: Prediction) -> bool {
        self.steady & COMPARED == likeness.0
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        (self.steady >> 8 & 0xFF) as u8
    }

    /// What it says of padding behind the payload.
    #[inline(always)]
    pub(crate) fn pad(self) -> usize {
        usize::from(Bth::pad_in(self.flags()))
    }

    /// Whom it names as the receiver's queue pair.
    #[inline(always)]
    pub(crate) fn destination(self) -> Qpn {
        Qpn::new(((self.steady >> 32) as u32).swap_bytes())
    }

    #[inline(always)]
    pub(crate) fn psn(self) -> Psn {
        Psn::new(self.last)
    }

    #[inline(always)]
    pub(crate) fn ack_request(self) -> bool {
        Bth::asks_in(self.last)
    }

    #[inline(always)]
    pub(crate) fn solicited(self) -> bool {
        Bth::solicits_in(self.flags())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Pkey;

    fn glance(bth: &Bth) -> RawBth {
        let bytes = bth.to_bytes();
        let (steady, last) = bytes.split_first_chunk().expect("twelve bytes");
        RawBth::new(*steady, *last.as_array().expect("four bytes"))
    }

    #[test]
    fn it_tells_what_the_header_does() {
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(0x12_3456), Psn::new(0x65_4321));
        for bth in [bth, bth.with_pad(3), bth.with_ack_request(true), bth.with_solicited(true)] {
            let glance = glance(&bth);
            assert_eq!((glance.destination(), glance.psn()), (bth.destination(), bth.psn()));
            assert_eq!(glance.pad(), usize::from(bth.pad()));
            assert_eq!(glance.ack_request(), bth.ack_request());
            assert_eq!(glance.solicited(), bth.solicited());
        }
    }

    #[test]
    fn only_what_is_of_another_kind_is_unlike() {
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(9), Psn::new(1));
        let like = [
            bth.with_psn(Psn::new(7)).with_ack_request(true),
            bth.with_solicited(true).with_pad(2).with_migrated(false),
            bth.with_congestion(true, true),
        ];
        let unlike = [
            bth.with_opcode(Opcode::RcSendFirst),
            bth.with_pkey(Pkey(0x7FFF)),
            Bth::new(Opcode::RcSendOnly, Qpn::new(8), Psn::new(1)),
        ];
        assert!(like.iter().all(|other| glance(other).is(Prediction::of(&bth))));
        assert!(!unlike.iter().any(|other| glance(other).is(Prediction::of(&bth))));
        let mut other_version = bth.to_bytes();
        other_version[1] |= 1;
        let (steady, _) = other_version.split_first_chunk().expect("twelve bytes");
        assert!(!RawBth::new(*steady, [0; 4]).is(Prediction::of(&bth)));
        let (write, of_writes) =
            (Opcode::RcWriteOnly, Prediction::of(&bth).with_opcode(Opcode::RcWriteOnly));
        assert_eq!(of_writes, Prediction::of(&bth.with_opcode(write)));
    }

    #[test]
    fn nothing_is_like_none() {
        for byte in [0, 0x55, 0xAA, 0xFF] {
            let glance = RawBth::new([byte; 8], [byte; 4]);
            assert!(!glance.is(Prediction::NONE));
            assert!(!glance.is(Prediction::NONE.with_opcode(Opcode::RcWriteOnly)));
        }
    }
}
