//! Extended transport headers (ETH), which follow the base transport header.

use super::malformed::{Malformed, Part, split};
use super::metadata::Metadata;
use super::numbers::{AtomicValue, DmaLength, Imm, Msn, Qkey, Qpn, RemoteAddr, Rkey};
use super::report::Report;
use super::syndrome::Syndrome;
use crate::fields::{at, be32, be64, put};

/// The RDMA extended transport header (RETH): which part of the peer's memory a request is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// The address in the peer's memory.
    pub address: RemoteAddr,
    /// The key that grants access to the memory.
    pub rkey: Rkey,
    /// The length of the whole message, not of this packet.
    pub length: DmaLength,
}

/// The ACK extended transport header (AETH): the outcome of a request, and how many messages were
/// completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// The outcome of the request: acknowledged, receiver not ready, or a NAK with its reason.
    pub syndrome: Syndrome,
    /// The number of messages that the responder has completed.
    pub msn: Msn,
}

/// The atomic extended transport header (AtomicETH): an atomic request with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicEth {
    /// The address of the word in the peer's memory.
    pub address: RemoteAddr,
    /// The key that grants access to the memory.
    pub rkey: Rkey,
    /// The value to store when the comparison succeeds, or the value to add.
    pub swap_or_add: AtomicValue,
    /// The value that the word is compared with.
    pub compare: AtomicValue,
}

/// The datagram extended transport header (DETH): the sender's queue pair, and the key that lets
/// the datagram in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deth {
    /// The key of the receiver's queue pair.
    pub qkey: Qkey,
    /// The sender's queue pair, to which an answer goes.
    pub source: Qpn,
    /// The reserved eight bits: sent as zero, ignored on receipt, and kept because the ICRC covers
    /// them.
    pub reserved: u8,
}

impl Reth {
    /// The length of the header on the wire.
    pub const LEN: usize = 16;

    #[inline]
    pub(crate) fn from_bytes(h: [u8; Self::LEN]) -> Self {
        Self {
            address: RemoteAddr(be64::<0, _>(&h)),
            rkey: Rkey(be32::<8, _>(&h)),
            length: DmaLength(be32::<12, _>(&h)),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        let key_and_length = u64::from(self.rkey.0) << 32 | u64::from(self.length.0);
        h[..8].copy_from_slice(&self.address.0.to_be_bytes());
        h[8..].copy_from_slice(&key_and_length.to_be_bytes());
        h
    }
}

impl Aeth {
    /// The length of the header on the wire.
    pub const LEN: usize = 4;

    #[inline]
    fn from_bytes(h: [u8; Self::LEN]) -> Self {
        let word = u32::from_be_bytes(h);
        Self { syndrome: Syndrome::from_code((word >> 24) as u8), msn: Msn::new(word) }
    }

    #[inline]
    fn to_bytes(self) -> [u8; Self::LEN] {
        (u32::from(self.syndrome.code()) << 24 | self.msn.get()).to_be_bytes()
    }
}

impl AtomicEth {
    /// The length of the header on the wire.
    pub const LEN: usize = 28;

    #[inline]
    fn from_bytes(h: [u8; Self::LEN]) -> Self {
        Self {
            address: RemoteAddr(be64::<0, _>(&h)),
            rkey: Rkey(be32::<8, _>(&h)),
            swap_or_add: AtomicValue(be64::<12, _>(&h)),
            compare: AtomicValue(be64::<20, _>(&h)),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0..8].copy_from_slice(&self.address.0.to_be_bytes());
        h[8..12].copy_from_slice(&self.rkey.0.to_be_bytes());
        h[12..20].copy_from_slice(&self.swap_or_add.0.to_be_bytes());
        h[20..28].copy_from_slice(&self.compare.0.to_be_bytes());
        h
    }
}

impl Deth {
    /// The length of the header on the wire.
    pub const LEN: usize = 8;

    #[inline]
    fn from_bytes(h: [u8; Self::LEN]) -> Self {
        Self { qkey: Qkey(be32::<0, _>(&h)), source: Qpn::new(be32::<4, _>(&h)), reserved: h[4] }
    }

    #[inline]
    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0..4].copy_from_slice(&self.qkey.0.to_be_bytes());
        let source = u32::from(self.reserved) << 24 | self.source.get();
        h[4..8].copy_from_slice(&source.to_be_bytes());
        h
    }
}

/// A list of the extension headers that an opcode has, in their order on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A packet without extension headers.
    None,
    /// The RDMA header alone (RETH).
    Reth,
    /// The RDMA header and immediate data (RETH, ImmDt).
    RethImm,
    /// The immediate data alone (ImmDt).
    Imm,
    /// The invalidate header alone (IETH).
    Ieth,
    /// The ACK header alone (AETH).
    Aeth,
    /// The ACK header and the old value of an atomic operation (AETH, AtomicAckETH).
    AethAtomicAck,
    /// The atomic header alone (AtomicETH).
    Atomic,
    /// The datagram header alone (DETH).
    Deth,
    /// The datagram header and immediate data (DETH, ImmDt).
    DethImm,
    /// The metadata alone, an extension of ours.
    Metadata,
    /// The RDMA header and metadata, an extension of ours.
    RethMetadata,
    /// The ACK header and a report of what has come, an extension of ours.
    AethReport,
}

impl Layout {
    /// Returns the bytes that the headers take together.
    #[inline]
    pub const fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Reth => Reth::LEN,
            Self::RethImm => Reth::LEN + 4,
            Self::Imm | Self::Ieth => 4,
            Self::Aeth => Aeth::LEN,
            Self::AethAtomicAck => Aeth::LEN + 8,
            Self::Atomic => AtomicEth::LEN,
            Self::Deth => Deth::LEN,
            Self::DethImm => Deth::LEN + 4,
            Self::Metadata => Metadata::LEN,
            Self::RethMetadata => Reth::LEN + Metadata::LEN,
            Self::AethReport => Aeth::LEN + Report::LEN,
        }
    }

    /// Whether the list has no extension header.
    #[inline]
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None)
    }
}

/// The extension headers of one packet, with a variant for each [`Layout`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extensions {
    /// A packet without extension headers.
    None,
    /// A part of the peer's memory (RETH).
    Reth(Reth),
    /// A part of the peer's memory and immediate data (RETH, ImmDt).
    RethImm(Reth, Imm),
    /// The immediate data of a message (ImmDt).
    Imm(Imm),
    /// The receiver's key that is to be invalidated (IETH).
    Ieth(Rkey),
    /// An acknowledgement or a NAK (AETH).
    Aeth(Aeth),
    /// An acknowledgement of an atomic operation, and the value that the word held before (AETH,
    /// AtomicAckETH).
    AethAtomicAck(Aeth, AtomicValue),
    /// An atomic request with its operands (AtomicETH).
    Atomic(AtomicEth),
    /// The addressing of a datagram (DETH).
    Deth(Deth),
    /// The addressing of a datagram and immediate data (DETH, ImmDt).
    DethImm(Deth, Imm),
    /// The metadata of a write, an extension of ours.
    Metadata(Metadata),
    /// A part of the peer's memory and the metadata of the write, an extension of ours.
    RethMetadata(Reth, Metadata),
    /// An acknowledgement and a report of what has come, an extension of ours.
    AethReport(Aeth, Report),
}

impl Extensions {
    /// The most bytes that extension headers take.
    pub const MAX_LEN: usize = Reth::LEN + Metadata::LEN;

    /// Returns the list of these headers.
    #[inline]
    pub const fn layout(&self) -> Layout {
        match self {
            Self::None => Layout::None,
            Self::Reth(_) => Layout::Reth,
            Self::RethImm(..) => Layout::RethImm,
            Self::Imm(_) => Layout::Imm,
            Self::Ieth(_) => Layout::Ieth,
            Self::Aeth(_) => Layout::Aeth,
            Self::AethAtomicAck(..) => Layout::AethAtomicAck,
            Self::Atomic(_) => Layout::Atomic,
            Self::Deth(_) => Layout::Deth,
            Self::DethImm(..) => Layout::DethImm,
            Self::Metadata(_) => Layout::Metadata,
            Self::RethMetadata(..) => Layout::RethMetadata,
            Self::AethReport(..) => Layout::AethReport,
        }
    }

    /// Parses the headers of `layout` in front of `bytes`. Returns the headers and the payload.
    /// Where the layout is a constant, this compiles to a few loads.
    #[inline(always)]
    pub fn parse(layout: Layout, bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        /// Splits off the headers of a layout, whose length is a constant.
        macro_rules! headers {
            ($layout:ident) => {
                split::<{ Layout::$layout.len() }>(Part::Extensions, bytes)?
            };
        }
        Ok(match layout {
            Layout::None => (Self::None, bytes),
            Layout::Reth => {
                let (h, rest) = headers!(Reth);
                (Self::Reth(Reth::from_bytes(*h)), rest)
            }
            Layout::RethImm => {
                let (h, rest) = headers!(RethImm);
                let imm = Imm(be32::<{ Reth::LEN }, _>(h));
                (Self::RethImm(Reth::from_bytes(at::<0, _, _>(h)), imm), rest)
            }
            Layout::Imm => {
                let (h, rest) = headers!(Imm);
                (Self::Imm(Imm(u32::from_be_bytes(*h))), rest)
            }
            Layout::Ieth => {
                let (h, rest) = headers!(Ieth);
                (Self::Ieth(Rkey(u32::from_be_bytes(*h))), rest)
            }
            Layout::Aeth => {
                let (h, rest) = headers!(Aeth);
                (Self::Aeth(Aeth::from_bytes(*h)), rest)
            }
            Layout::AethAtomicAck => {
                let (h, rest) = headers!(AethAtomicAck);
                let value = AtomicValue(be64::<{ Aeth::LEN }, _>(h));
                (Self::AethAtomicAck(Aeth::from_bytes(at::<0, _, _>(h)), value), rest)
            }
            Layout::Atomic => {
                let (h, rest) = headers!(Atomic);
                (Self::Atomic(AtomicEth::from_bytes(*h)), rest)
            }
            Layout::Deth => {
                let (h, rest) = headers!(Deth);
                (Self::Deth(Deth::from_bytes(*h)), rest)
            }
            Layout::DethImm => {
                let (h, rest) = headers!(DethImm);
                let imm = Imm(be32::<{ Deth::LEN }, _>(h));
                (Self::DethImm(Deth::from_bytes(at::<0, _, _>(h)), imm), rest)
            }
            Layout::Metadata => {
                let (h, rest) = headers!(Metadata);
                (Self::Metadata(Metadata::from_bytes(*h)?), rest)
            }
            Layout::RethMetadata => {
                let (h, rest) = headers!(RethMetadata);
                let metadata = Metadata::from_bytes(at::<{ Reth::LEN }, _, _>(h))?;
                (Self::RethMetadata(Reth::from_bytes(at::<0, _, _>(h)), metadata), rest)
            }
            Layout::AethReport => {
                let (h, rest) = headers!(AethReport);
                let report = Report::from_bytes(at::<{ Aeth::LEN }, _, _>(h));
                (Self::AethReport(Aeth::from_bytes(at::<0, _, _>(h)), report), rest)
            }
        })
    }

    /// Writes the headers to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the [layout](Self::layout)'s length.
    #[inline(always)]
    pub fn emit(&self, out: &mut [u8]) {
        match *self {
            Self::None => out,
            Self::Reth(reth) => put(out, reth.to_bytes()),
            Self::RethImm(reth, imm) => put(put(out, reth.to_bytes()), imm.0.to_be_bytes()),
            Self::Imm(imm) => put(out, imm.0.to_be_bytes()),
            Self::Ieth(rkey) => put(out, rkey.0.to_be_bytes()),
            Self::Aeth(aeth) => put(out, aeth.to_bytes()),
            Self::AethAtomicAck(aeth, value) => {
                put(put(out, aeth.to_bytes()), value.0.to_be_bytes())
            }
            Self::Atomic(atomic) => put(out, atomic.to_bytes()),
            Self::Deth(deth) => put(out, deth.to_bytes()),
            Self::DethImm(deth, imm) => put(put(out, deth.to_bytes()), imm.0.to_be_bytes()),
            Self::Metadata(metadata) => metadata.emit(out),
            Self::RethMetadata(reth, metadata) => metadata.emit(put(out, reth.to_bytes())),
            Self::AethReport(aeth, report) => report.emit(put(out, aeth.to_bytes())),
        };
    }

    /// Returns the immediate data, if there is any.
    #[inline]
    pub const fn immediate(&self) -> Option<Imm> {
        match *self {
            Self::RethImm(_, imm) | Self::Imm(imm) | Self::DethImm(_, imm) => Some(imm),
            _ => None,
        }
    }
}
