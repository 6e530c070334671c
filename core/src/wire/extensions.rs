//! The extension headers, which stand between the base transport header and the payload.

use std::fmt;

use super::malformed::{Malformed, Part};
use super::numbers::{AtomicValue, DmaLength, Imm, Msn, Qkey, Qpn, RemoteAddr, Rkey};
use super::syndrome::Syndrome;

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
        Some(Self { len: bytes.len() as u8, bytes: own })
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn from_bytes(h: [u8; Self::LEN]) -> Result<Self, Malformed> {
        let (claimed, have) = (be32(&h, 0) as usize, Self::MOST);
        if claimed > have {
            return Err(Malformed::Length { part: Part::Extensions, claimed, have });
        }
        Ok(Self { len: claimed as u8, bytes: take(&h, 4) })
    }

    fn emit(self, out: &mut [u8]) {
        out[..4].copy_from_slice(&u32::from(self.len).to_be_bytes());
        out[4..Self::LEN].copy_from_slice(&self.bytes);
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
            address: RemoteAddr(be64(&h, 0)),
            rkey: Rkey(be32(&h, 8)),
            length: DmaLength(be32(&h, 12)),
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
            address: RemoteAddr(be64(&h, 0)),
            rkey: Rkey(be32(&h, 8)),
            swap_or_add: AtomicValue(be64(&h, 12)),
            compare: AtomicValue(be64(&h, 20)),
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
        Self { qkey: Qkey(be32(&h, 0)), source: Qpn::new(be32(&h, 4)), reserved: h[4] }
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
        let Some((h, rest)) = bytes.split_at_checked(layout.len()) else {
            let (need, have) = (layout.len(), bytes.len());
            return Err(Malformed::Truncated { part: Part::Extensions, need, have });
        };
        let extensions = match layout {
            Layout::None => Self::None,
            Layout::Reth => Self::Reth(Reth::from_bytes(take(h, 0))),
            Layout::RethImm => Self::RethImm(Reth::from_bytes(take(h, 0)), Imm(be32(h, Reth::LEN))),
            Layout::Imm => Self::Imm(Imm(be32(h, 0))),
            Layout::Ieth => Self::Ieth(Rkey(be32(h, 0))),
            Layout::Aeth => Self::Aeth(Aeth::from_bytes(take(h, 0))),
            Layout::AethAtomicAck => {
                Self::AethAtomicAck(Aeth::from_bytes(take(h, 0)), AtomicValue(be64(h, Aeth::LEN)))
            }
            Layout::Atomic => Self::Atomic(AtomicEth::from_bytes(take(h, 0))),
            Layout::Deth => Self::Deth(Deth::from_bytes(take(h, 0))),
            Layout::DethImm => Self::DethImm(Deth::from_bytes(take(h, 0)), Imm(be32(h, Deth::LEN))),
            Layout::Metadata => Self::Metadata(Metadata::from_bytes(take(h, 0))?),
            Layout::RethMetadata => {
                let metadata = Metadata::from_bytes(take(h, Reth::LEN))?;
                Self::RethMetadata(Reth::from_bytes(take(h, 0)), metadata)
            }
        };
        Ok((extensions, rest))
    }

    /// Writes the headers to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the [layout](Self::layout)'s length.
    #[inline(always)]
    pub fn emit(&self, out: &mut [u8]) {
        match *self {
            Self::None => {}
            Self::Reth(reth) => out[..16].copy_from_slice(&reth.to_bytes()),
            Self::RethImm(reth, imm) => {
                out[..16].copy_from_slice(&reth.to_bytes());
                out[16..20].copy_from_slice(&imm.0.to_be_bytes());
            }
            Self::Imm(imm) => out[..4].copy_from_slice(&imm.0.to_be_bytes()),
            Self::Ieth(rkey) => out[..4].copy_from_slice(&rkey.0.to_be_bytes()),
            Self::Aeth(aeth) => out[..4].copy_from_slice(&aeth.to_bytes()),
            Self::AethAtomicAck(aeth, value) => {
                out[..4].copy_from_slice(&aeth.to_bytes());
                out[4..12].copy_from_slice(&value.0.to_be_bytes());
            }
            Self::Atomic(atomic) => out[..28].copy_from_slice(&atomic.to_bytes()),
            Self::Deth(deth) => out[..8].copy_from_slice(&deth.to_bytes()),
            Self::DethImm(deth, imm) => {
                out[..8].copy_from_slice(&deth.to_bytes());
                out[8..12].copy_from_slice(&imm.0.to_be_bytes());
            }
            Self::Metadata(metadata) => metadata.emit(out),
            Self::RethMetadata(reth, metadata) => {
                out[..16].copy_from_slice(&reth.to_bytes());
                metadata.emit(&mut out[16..]);
            }
        }
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

/// The `N` bytes at `at`: the caller has cut `bytes` to the layout's length.
#[inline]
fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[inline]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(take(bytes, at))
}

#[inline]
fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(take(bytes, at))
}
