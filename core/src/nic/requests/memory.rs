//! The memory of requests: what they send, and where they put what they receive.

use std::fmt;

use crate::memory::{Buf, InlineBytes};
use crate::nic::protection::segment::Segment;

/// The most bytes that one message may have.
pub const LONGEST_MESSAGE: u32 = 1 << 31;

/// The most bytes that a request carries in itself.
pub const MOST_INLINE: usize = InlineBytes::MOST;

/// Memory that is lent to the NIC with a request, and comes back with its completion.
///
/// A `Memory` is made of a [`Buf`], of whatever a `Buf` takes over without a copy (`Vec<u8>`,
/// `Box<[u8]>`, `BytesMut`), of a [`Segment`], or of a list of segments. When a vector or a `Buf`
/// is received or read into, its capacity counts, and not its length.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Memory {
    /// No memory goes with the request.
    #[default]
    None,
    /// A part of registered memory.
    Segment(Segment),
    /// A buffer, whose filled bytes are sent, or whose whole capacity is received into.
    Buf(Buf),
    /// Several segments, gathered or scattered in their order.
    List(Box<[Segment]>),
}

/// A few bytes that travel in the request itself.
#[derive(Clone, Copy)]
pub struct Inline(InlineBytes);

/// The data that a request sends.
///
/// `Data` is made of any [`Memory`], or of whatever that is made of; of `Bytes` and `String`,
/// without a copy where nobody else has the bytes; and of bytes and text that are in the program
/// itself (`b"hello"`), which travel in the request if they are not more than [`MOST_INLINE`], and
/// are copied otherwise.
pub enum Data {
    /// A copy of a few bytes, made when the request was posted.
    Inline(Inline),
    /// Bytes that stay where they are until the request completes.
    Memory(Memory),
}

impl Inline {
    /// Makes a copy of `bytes`, if they are not more than [`MOST_INLINE`].
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        InlineBytes::new(bytes).map(Self)
    }

    /// Makes inline data of the bytes of `first` and of the words behind it, the lowest byte first,
    /// if they are not more than [`MOST_INLINE`]. Words that are in registers already need not go
    /// through memory.
    #[inline(always)]
    pub fn of_words(first: u64, words: &[u64]) -> Option<Self> {
        InlineBytes::of_words(first, words).map(Self)
    }

    /// The bytes that travel in the request.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Memory {
    /// How many bytes the memory offers to be sent.
    #[inline]
    pub fn filled(&self) -> u64 {
        match self {
            Self::Buf(buf) => buf.len() as u64,
            other => other.room(),
        }
    }

    /// How many bytes may be received into the memory.
    #[inline]
    pub fn room(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Buf(buf) => buf.capacity() as u64,
            Self::Segment(segment) => u64::from(segment.len),
            Self::List(list) => list.iter().map(|segment| u64::from(segment.len)).sum(),
        }
    }

    /// Returns the buffer, or an empty one if the memory is of another kind.
    #[inline]
    pub fn into_buf(self) -> Buf {
        match self {
            Self::Buf(buf) => buf,
            _ => Buf::default(),
        }
    }

    /// The parts of registered memory that this memory consists of, if it is no buffer.
    #[inline]
    pub(crate) fn segments(&self) -> &[Segment] {
        match self {
            Self::None | Self::Buf(_) => &[],
            Self::Segment(segment) => std::slice::from_ref(segment),
            Self::List(list) => list,
        }
    }
}

impl Data {
    /// The bytes that are sent, if they lie in private memory, in one piece.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(inline) => Some(inline.bytes()),
            Self::Memory(Memory::Buf(buf)) => Some(buf),
            Self::Memory(_) => None,
        }
    }

    /// The parts of registered memory that are sent, if the data is neither inline nor a buffer.
    #[inline]
    pub(crate) fn segments(&self) -> &[Segment] {
        match self {
            Self::Inline(_) => &[],
            Self::Memory(memory) => memory.segments(),
        }
    }

    /// Takes the memory out, to go back to the program with the completion.
    #[inline]
    pub(crate) fn take_memory(&mut self) -> Memory {
        match self {
            Self::Inline(_) => Memory::None,
            Self::Memory(memory) => std::mem::take(memory),
        }
    }

    /// How many bytes the request sends.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(inline) => inline.bytes().len() as u64,
            Self::Memory(memory) => memory.filled(),
        }
    }

    /// Whether the request sends no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inline({} bytes)", self.bytes().len())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "None"),
            Self::Buf(buf) => buf.fmt(f),
            Self::Segment(segment) => segment.fmt(f),
            Self::List(list) => list.fmt(f),
        }
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(inline) => inline.fmt(f),
            Self::Memory(memory) => memory.fmt(f),
        }
    }
}
