//! Header prediction: one comparison tells whether a packet is the kind of packet that a flow is
//! expected to bring next, as TCP implementations do it.

use super::bth::Bth;
use super::numbers::{Psn, Qpn};
use super::opcode::Opcode;

/// A base transport header whose fields were not checked. It is compared with a prediction: if the two
/// match, no field has to be checked any more.
#[derive(Clone, Copy, Debug)]
pub struct RawBth {
    /// The first eight bytes, the first of them in the low bits.
    steady: u64,
    /// The last word, as a number.
    last: u32,
}

/// The base transport header that a flow's next packets are expected to have, but for the fields that
/// differ from packet to packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prediction(u64);

/// The bits that are compared: opcode, version, partition, destination. Other bits of these bytes
/// differ from packet to packet, or have no meaning.
const COMPARED: u64 = u64::from_le_bytes([0xFF, 0x0F, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF]);

impl Prediction {
    /// A prediction that no packet matches.
    pub const NONE: Self = Self(!COMPARED);

    /// Predicts packets with headers like `bth`.
    pub fn of(bth: &Bth) -> Self {
        Self(u64::from_le_bytes(bth.steady()) & COMPARED)
    }

    /// Predicts packets that differ from the predicted ones by their opcode alone. From
    /// [`NONE`](Self::NONE), it makes a prediction that no packet matches.
    #[inline(always)]
    pub const fn with_opcode(self, opcode: Opcode) -> Self {
        Self(self.0 & !0xFF | opcode.code() as u64)
    }
}

impl RawBth {
    /// Takes the bytes of a header.
    pub(crate) fn of(bth: &Bth) -> Self {
        let last = bth.last_word().swap_bytes();
        Self { steady: u64::from_le_bytes(bth.steady()), last }
    }

    /// Takes the first eight and the last four bytes of a header.
    #[inline(always)]
    pub(crate) fn new(steady: [u8; 8], last: [u8; 4]) -> Self {
        Self { steady: u64::from_le_bytes(steady), last: u32::from_be_bytes(last) }
    }

    /// Whether the header is as predicted.
    #[inline(always)]
    pub(crate) fn is(self, prediction: Prediction) -> bool {
        self.steady & COMPARED == prediction.0
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        (self.steady >> 8 & 0xFF) as u8
    }

    /// Returns the pad count.
    #[inline(always)]
    pub(crate) fn pad(self) -> usize {
        usize::from(Bth::pad_in(self.flags()))
    }

    /// Returns the queue pair that the packet is for.
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

    fn raw(bth: &Bth) -> RawBth {
        let bytes = bth.to_bytes();
        let (steady, last) = bytes.split_first_chunk().expect("twelve bytes");
        RawBth::new(*steady, *last.as_array().expect("four bytes"))
    }

    #[test]
    fn a_raw_header_has_the_fields_of_the_parsed_one() {
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(0x12_3456), Psn::new(0x65_4321));
        for bth in [bth, bth.with_pad(3), bth.with_ack_request(true), bth.with_solicited(true)] {
            let raw = raw(&bth);
            assert_eq!((raw.destination(), raw.psn()), (bth.destination(), bth.psn()));
            assert_eq!(raw.pad(), usize::from(bth.pad()));
            assert_eq!(raw.ack_request(), bth.ack_request());
            assert_eq!(raw.solicited(), bth.solicited());
        }
    }

    #[test]
    fn only_packets_of_another_kind_differ_from_the_prediction() {
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
        assert!(like.iter().all(|other| raw(other).is(Prediction::of(&bth))));
        assert!(!unlike.iter().any(|other| raw(other).is(Prediction::of(&bth))));
        let mut other_version = bth.to_bytes();
        other_version[1] |= 1;
        let (steady, _) = other_version.split_first_chunk().expect("twelve bytes");
        assert!(!RawBth::new(*steady, [0; 4]).is(Prediction::of(&bth)));
        let (write, of_writes) =
            (Opcode::RcWriteOnly, Prediction::of(&bth).with_opcode(Opcode::RcWriteOnly));
        assert_eq!(of_writes, Prediction::of(&bth.with_opcode(write)));
    }

    #[test]
    fn no_packet_matches_the_empty_prediction() {
        for byte in [0, 0x55, 0xAA, 0xFF] {
            let raw = RawBth::new([byte; 8], [byte; 4]);
            assert!(!raw.is(Prediction::NONE));
            assert!(!raw.is(Prediction::NONE.with_opcode(Opcode::RcWriteOnly)));
        }
    }
}
