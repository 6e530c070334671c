//! The base transport header, in front of every InfiniBand packet.

use super::malformed::{Malformed, Part};
use super::numbers::{Pkey, Psn, Qpn};
use super::opcode::Opcode;

/// The base transport header: what the packet is, whom it is for, and its place in the sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bth {
    /// What the packet is and which headers follow.
    pub opcode: Opcode,
    /// Whether the receiver of the message should be woken: a solicited event.
    pub solicited: bool,
    /// The migration state. Adapters send it set; it is not judged.
    pub migrated: bool,
    /// How many bytes of padding, 0 to 3, stand behind the payload.
    pub pad: u8,
    /// The partition of the sender.
    pub pkey: Pkey,
    /// Forward congestion notification. Routers may change it: the ICRC does not cover it.
    pub fecn: bool,
    /// Backward congestion notification. Routers may change it: the ICRC does not cover it.
    pub becn: bool,
    /// The queue pair that it is for.
    pub destination: Qpn,
    /// Whether the sender asks for an acknowledgement.
    pub ack_request: bool,
    /// The packet's place in its sequence.
    pub psn: Psn,
    /// The reserved bits, six behind BECN and seven behind the acknowledgement request: sent as
    /// zero, ignored on receipt, kept because the ICRC covers some of them.
    pub reserved: (u8, u8),
}

impl Bth {
    /// Its length on the wire.
    pub const LEN: usize = 12;

    /// A header for a packet of `opcode` to `destination`, everything optional off, as an adapter
    /// sends it: migrated, in the default partition.
    #[inline]
    pub const fn new(opcode: Opcode, destination: Qpn, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            pkey: Pkey::DEFAULT,
            fecn: false,
            becn: false,
            destination,
            ack_request: false,
            psn,
            reserved: (0, 0),
        }
    }

    /// Reads the header.
    #[inline]
    pub fn from_bytes(h: &[u8; Self::LEN]) -> Result<Self, Malformed> {
        let opcode = Opcode::from_code(h[0]).ok_or(Malformed::Opcode(h[0]))?;
        if h[1] & 0xF != 0 {
            return Err(Malformed::Version { part: Part::Bth, found: h[1] & 0xF });
        }
        Ok(Self {
            opcode,
            solicited: h[1] & 0x80 != 0,
            migrated: h[1] & 0x40 != 0,
            pad: h[1] >> 4 & 3,
            pkey: Pkey(u16::from_be_bytes([h[2], h[3]])),
            fecn: h[4] & 0x80 != 0,
            becn: h[4] & 0x40 != 0,
            destination: Qpn::new(u32::from_be_bytes([h[4], h[5], h[6], h[7]])),
            ack_request: h[8] & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([h[8], h[9], h[10], h[11]])),
            reserved: (h[4] & 0x3F, h[8] & 0x7F),
        })
    }

    /// The header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0] = self.opcode.code();
        let flags = u8::from(self.solicited) << 7 | u8::from(self.migrated) << 6 | self.pad << 4;
        h[1] = flags;
        h[2..4].copy_from_slice(&self.pkey.0.to_be_bytes());
        let congestion = u32::from(self.fecn) << 31
            | u32::from(self.becn) << 30
            | u32::from(self.reserved.0) << 24;
        h[4..8].copy_from_slice(&(congestion | self.destination.get()).to_be_bytes());
        let ack = u32::from(self.ack_request) << 31 | u32::from(self.reserved.1) << 24;
        h[8..12].copy_from_slice(&(ack | self.psn.get()).to_be_bytes());
        h
    }
}
