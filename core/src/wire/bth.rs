//! The base transport header (BTH), with which every InfiniBand packet begins.

use std::fmt;

use super::malformed::{Malformed, Part};
use super::numbers::{Pkey, Psn, Qpn};
use super::opcode::Opcode;

/// The base transport header: what the packet is, whom it is for, and its place in the sequence of
/// packets.
///
/// The struct keeps the twelve bytes of the wire, and a method extracts each field, since most
/// packets are asked for few fields. Reserved bits are kept as they came, because the ICRC covers
/// some of them; they have no meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bth {
    opcode: Opcode,
    /// Solicited event 1, migrated 1, pad count 2, version 4.
    flags: u8,
    pkey: Pkey,
    /// FECN 1, BECN 1, reserved 6, destination 24.
    destination: u32,
    /// Acknowledgement request 1, reserved 7, PSN 24.
    psn: u32,
}

const SOLICITED: u8 = 0x80;
const MIGRATED: u8 = 0x40;
const PAD_SHIFT: u32 = 4;
const VERSION: u8 = 0x0F;
const FECN: u32 = 1 << 31;
const BECN: u32 = 1 << 30;
const ACK_REQUEST: u32 = 1 << 31;

impl Bth {
    /// The length of the header on the wire.
    pub const LEN: usize = 12;

    /// Returns a header for a packet of `opcode` to `destination`, as an adapter sends it:
    /// migrated, in the default partition, with all optional flags off.
    #[inline]
    pub const fn new(opcode: Opcode, destination: Qpn, psn: Psn) -> Self {
        let (destination, psn) = (destination.get(), psn.get());
        Self { opcode, flags: MIGRATED, pkey: Pkey::DEFAULT, destination, psn }
    }

    /// Parses the header from its bytes on the wire.
    #[inline]
    pub fn from_bytes(h: &[u8; Self::LEN]) -> Result<Self, Malformed> {
        let [code, flags, p, q, a, b, c, d, e, f, g, i] = *h;
        let Some(opcode) = Opcode::from_code(code) else { return Err(Malformed::Opcode(code)) };
        if flags & VERSION != 0 {
            return Err(Malformed::Version { part: Part::Bth, found: flags & VERSION });
        }
        Ok(Self {
            opcode,
            flags,
            pkey: Pkey(u16::from_be_bytes([p, q])),
            destination: u32::from_be_bytes([a, b, c, d]),
            psn: u32::from_be_bytes([e, f, g, i]),
        })
    }

    /// Returns the header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let [a, b, c, d, e, f, g, h] = self.steady();
        let [i, j, k, l] = self.psn.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// Returns the first eight bytes, which the packets of one kind in a flow have in common. The
    /// last word, which has the sequence number, is not among them.
    #[inline]
    pub(crate) fn steady(&self) -> [u8; 8] {
        let [p, q] = self.pkey.0.to_be_bytes();
        let [a, b, c, d] = self.destination.to_be_bytes();
        [self.opcode.code(), self.flags, p, q, a, b, c, d]
    }

    /// Returns the last word, its first byte in the low bits.
    #[inline]
    pub(crate) fn last_word(&self) -> u32 {
        u32::from_le_bytes(self.psn.to_be_bytes())
    }

    /// Returns the pad count in the second byte of a header.
    #[inline]
    pub(super) const fn pad_in(flags: u8) -> u8 {
        flags >> PAD_SHIFT & 3
    }

    /// Whether the second byte of a header has the solicited event bit.
    #[inline]
    pub(super) const fn solicits_in(flags: u8) -> bool {
        flags & SOLICITED != 0
    }

    /// Whether the last word of a header requests an acknowledgement.
    #[inline]
    pub(super) const fn asks_in(last: u32) -> bool {
        last & ACK_REQUEST != 0
    }

    /// Returns the opcode, which says what the packet is and which headers follow.
    #[inline]
    pub const fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// Returns the queue pair that the packet is for.
    #[inline]
    pub const fn destination(&self) -> Qpn {
        Qpn::new(self.destination)
    }

    /// Returns the packet sequence number.
    #[inline]
    pub const fn psn(&self) -> Psn {
        Psn::new(self.psn)
    }

    /// Returns the key of the sender's partition.
    #[inline]
    pub const fn pkey(&self) -> Pkey {
        self.pkey
    }

    /// Returns how many bytes of padding, 0 to 3, follow the payload.
    #[inline]
    pub const fn pad(&self) -> u8 {
        Self::pad_in(self.flags)
    }

    /// Whether the sender requests an acknowledgement.
    #[inline]
    pub const fn ack_request(&self) -> bool {
        Self::asks_in(self.psn)
    }

    /// Whether the message is to wake its receiver: the solicited event bit.
    #[inline]
    pub const fn solicited(&self) -> bool {
        Self::solicits_in(self.flags)
    }

    /// Whether the migration bit is set. Adapters set it; this program ignores it.
    #[inline]
    pub const fn migrated(&self) -> bool {
        self.flags & MIGRATED != 0
    }

    /// Whether the forward congestion notification bit is set. Routers may set it, so the ICRC does
    /// not cover it.
    #[inline]
    pub const fn fecn(&self) -> bool {
        self.destination & FECN != 0
    }

    /// Whether the backward congestion notification bit is set. Routers may set it, so the ICRC
    /// does not cover it.
    #[inline]
    pub const fn becn(&self) -> bool {
        self.destination & BECN != 0
    }

    /// Returns the header with another opcode.
    #[inline]
    #[must_use]
    pub const fn with_opcode(self, opcode: Opcode) -> Self {
        Self { opcode, ..self }
    }

    /// Returns the header with another packet sequence number.
    #[inline]
    #[must_use]
    pub const fn with_psn(self, psn: Psn) -> Self {
        Self { psn: self.psn & !Psn::MAX.get() | psn.get(), ..self }
    }

    /// Returns the header with another partition key.
    #[inline]
    #[must_use]
    pub const fn with_pkey(self, pkey: Pkey) -> Self {
        Self { pkey, ..self }
    }

    /// Returns the header with another pad count, of which the low two bits are taken.
    #[inline]
    #[must_use]
    pub const fn with_pad(self, pad: u8) -> Self {
        Self { flags: self.flags & !(3 << PAD_SHIFT) | (pad & 3) << PAD_SHIFT, ..self }
    }

    /// Returns the header with the acknowledgement request bit set or cleared.
    #[inline]
    #[must_use]
    pub const fn with_ack_request(self, asked: bool) -> Self {
        Self { psn: self.psn & !ACK_REQUEST | (asked as u32) << 31, ..self }
    }

    /// Returns the header with the solicited event bit set or cleared.
    #[inline]
    #[must_use]
    pub const fn with_solicited(self, solicited: bool) -> Self {
        Self { flags: self.flags & !SOLICITED | (solicited as u8) << 7, ..self }
    }

    /// Returns the header with the migration bit set or cleared.
    #[inline]
    #[must_use]
    pub const fn with_migrated(self, migrated: bool) -> Self {
        Self { flags: self.flags & !MIGRATED | (migrated as u8) << 6, ..self }
    }

    /// Returns the header with these congestion notification bits.
    #[inline]
    #[must_use]
    pub const fn with_congestion(self, fecn: bool, becn: bool) -> Self {
        let destination = self.destination & !(FECN | BECN);
        Self { destination: destination | (fecn as u32) << 31 | (becn as u32) << 30, ..self }
    }
}

impl fmt::Debug for Bth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bth")
            .field("opcode", &self.opcode())
            .field("destination", &self.destination())
            .field("psn", &self.psn())
            .field("pkey", &self.pkey())
            .field("pad", &self.pad())
            .field("ack_request", &self.ack_request())
            .field("solicited", &self.solicited())
            .field("migrated", &self.migrated())
            .field("fecn", &self.fecn())
            .field("becn", &self.becn())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_changed_alone() {
        let reserved = [0x0A, 0x40, 0xFF, 0xFF, 0x3F, 0, 0, 9, 0x7F, 0, 0, 1];
        let plain = Bth::from_bytes(&reserved).unwrap();
        let all = plain
            .with_opcode(Opcode::RcSendOnly)
            .with_psn(Psn::MAX)
            .with_pkey(Pkey(0x8001))
            .with_pad(2)
            .with_ack_request(true)
            .with_solicited(true)
            .with_migrated(false)
            .with_congestion(true, true);
        assert_eq!(all.to_bytes(), [4, 0xA0, 0x80, 1, 0xFF, 0, 0, 9, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!((all.opcode(), all.psn()), (Opcode::RcSendOnly, Psn::MAX));
        assert_eq!((all.destination(), all.pkey(), all.pad()), (Qpn::new(9), Pkey(0x8001), 2));
        assert!(all.ack_request() && all.solicited() && !all.migrated());
        assert!(all.fecn() && all.becn());
        let back = all
            .with_opcode(Opcode::RcWriteOnly)
            .with_psn(Psn::new(1))
            .with_pkey(Pkey::DEFAULT)
            .with_pad(0)
            .with_ack_request(false)
            .with_solicited(false)
            .with_migrated(true)
            .with_congestion(false, false);
        assert_eq!(back, plain);
        assert_eq!(back.to_bytes(), reserved);
    }
}
