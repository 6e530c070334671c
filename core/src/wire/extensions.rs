//! The extension headers, which stand between the base transport header and the payload.

use std::fmt;

use super::malformed::{Malformed, Part, split};
use super::numbers::{AtomicValue, DmaLength, Imm, Msn, Qkey, Qpn, RemoteAddr, Rkey};
use super::syndrome::Syndrome;
use crate::fields::{at, be32, be64, put};

/// RDMA: which part of the peer's memory a request is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// Where it begins.
    pub address: RemoteAddr,
    /// The key that grants access.
    pub rkey: Rkey,
    /// The length of the whole message, not of this packet.
    pub length: DmaLength,
}

/// Acknowledgement: what became of a request, and how many messages were completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Acknowledged, not ready, or refused and why.
    pub syndrome: Syndrome,
    /// The messages completed by the responder.
    pub msn: Msn,
}

/// An atomic request and its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicEth {
    /// The word in the peer's memory.
    pub address: RemoteAddr,
    /// The key that grants access.
    pub rkey: Rkey,
    /// What to store when the comparison holds, or what to add.
    pub swap_or_add: AtomicValue,
    /// What to compare with.
    pub compare: AtomicValue,
}

/// Datagram: who sends, and the key that lets it in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deth {
    /// The receiver's key.
    pub qkey: Qkey,
    /// The sender's queue pair, to answer to.
    pub source: Qpn,
    /// Eight reserved bits: sent as zero, ignored, kept because the ICRC covers them.
    pub reserved: u8,
}

/// A few bytes that go with a write into the completion that it makes: our own extension. On the
/// wire it is a word for how many they are, and then always sixteen.
///
/// ```
/// use doorbell_core::wire::Metadata;
///
/// let metadata = Metadata::try_from(b"a word".as_slice())?;
/// assert_eq!(metadata.as_ref(), b"a word");
/// # Ok::<(), doorbell_core::wire::MetadataTooLong>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// How many, at most sixteen.
    len: u8,
    bytes: [u8; Self::MOST],
}

impl Metadata {
    /// The most bytes that there may be.
    pub const MOST: usize = 16;
    /// Its length on the wire.
    pub const LEN: usize = 4 + Self::MOST;

    /// A copy of `bytes`, if they are not more than [`MOST`](Self::MOST).
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut own = [0; Self::MOST];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: u8::try_from(bytes.len()).ok()?, bytes: own })
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // There are never more than the array has.
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    fn from_bytes(h: [u8; Self::LEN]) -> Result<Self, Malformed> {
        let (claimed, have) = (be32::<0, _>(&h), Self::MOST);
        match u8::try_from(claimed) {
            Ok(len) if usize::from(len) <= have => Ok(Self { len, bytes: at::<4, _, _>(&h) }),
            _ => {
                let claimed = claimed as usize;
                Err(Malformed::Length { part: Part::Extensions, claimed, have })
            }
        }
    }

    fn emit(self, out: &mut [u8]) -> &mut [u8] {
        put(put(out, u32::from(self.len).to_be_bytes()), self.bytes)
    }
}

/// More bytes than metadata may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{len} bytes are too many for metadata, which may be up to {} bytes", Metadata::MOST)]
pub struct MetadataTooLong {
    /// How many there are.
    pub len: usize,
}

impl TryFrom<&[u8]> for Metadata {
    type Error = MetadataTooLong;

    fn try_from(bytes: &[u8]) -> Result<Self, MetadataTooLong> {
        Self::new(bytes).ok_or(MetadataTooLong { len: bytes.len() })
    }
}

impl AsRef<[u8]> for Metadata {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Metadata({:?})", self.bytes())
    }
}

impl Reth {
    /// Its length on the wire.
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
    /// Its length on the wire.
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
    /// Its length on the wire.
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
    /// Its length on the wire.
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

/// Which extension headers an opcode has, in their order on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// No extension header.
    None,
    /// RETH.
    Reth,
    /// RETH, ImmDt.
    RethImm,
    /// ImmDt.
    Imm,
    /// IETH.
    Ieth,
    /// AETH.
    Aeth,
    /// AETH, AtomicAckETH.
    AethAtomicAck,
    /// AtomicETH.
    Atomic,
    /// DETH.
    Deth,
    /// DETH, ImmDt.
    DethImm,
    /// Metadata.
    Metadata,
    /// RETH, metadata.
    RethMetadata,
}

impl Layout {
    /// The bytes that the headers take together.
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
        }
    }

    /// Whether there is no extension header.
    #[inline]
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None)
    }
}

/// The extension headers of one packet: a variant for each [`Layout`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extensions {
    /// No extension header.
    None,
    /// A part of the peer's memory.
    Reth(Reth),
    /// A part of the peer's memory and an immediate.
    RethImm(Reth, Imm),
    /// An immediate.
    Imm(Imm),
    /// A key of the receiver's, to be invalidated.
    Ieth(Rkey),
    /// An acknowledgement.
    Aeth(Aeth),
    /// An acknowledgement and the value that the word held.
    AethAtomicAck(Aeth, AtomicValue),
    /// An atomic request.
    Atomic(AtomicEth),
    /// The addressing of a datagram.
    Deth(Deth),
    /// The addressing of a datagram and an immediate.
    DethImm(Deth, Imm),
    /// What goes with a write.
    Metadata(Metadata),
    /// A part of the peer's memory and what goes with the write.
    RethMetadata(Reth, Metadata),
}

impl Extensions {
    /// The most bytes that any extension headers take.
    pub const MAX_LEN: usize = Reth::LEN + Metadata::LEN;

    /// Which headers these are.
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
        }
    }

    /// Reads the headers of `layout` in front of `bytes`; the rest is the payload. Where the layout
    /// is known when this is compiled, it is a few loads.
    #[inline(always)]
    pub fn parse(layout: Layout, bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        /// The headers of a layout, whose length is a constant, and the rest.
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
        };
    }

    /// The immediate among them, if there is one.
    #[inline]
    pub const fn immediate(&self) -> Option<Imm> {
        match *self {
            Self::RethImm(_, imm) | Self::Imm(imm) | Self::DethImm(_, imm) => Some(imm),
            _ => None,
        }
    }
}
