//! What a program asks of the NIC: work requests, receives, and the memory they name.

mod conversions;

use std::fmt;

use crate::memory::{Buf, Few};
use crate::wire::{Imm, Metadata, Qkey, Qpn, RemoteAddr, Rkey, Service};

use super::common::AddressId;
use super::completion::Done;
use super::keys::Lkey;

/// The most bytes of one message.
pub const LONGEST_MESSAGE: u32 = 1 << 31;

/// The most bytes that a request carries in itself.
pub const MOST_INLINE: usize = Few::MOST;

/// A part of registered memory, by the key that its registration gave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// Where it begins, by the registration's addresses.
    pub address: u64,
    /// How many bytes it has.
    pub len: u32,
    /// The key.
    pub lkey: Lkey,
}

/// Memory that a request takes with it, and its completion brings back.
///
/// It is made of a [`Buf`], of whatever a `Buf` takes over without a copy (`Vec<u8>`, `Box<[u8]>`,
/// `BytesMut`), of a [`Segment`], or of a list of those. Of a vector to be received or read into,
/// it is the capacity that counts, as of a `Buf`, and not the length.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Memory {
    /// None.
    #[default]
    None,
    /// A part of registered memory.
    Segment(Segment),
    /// A buffer: its filled bytes to be sent, or its whole capacity to be received into.
    Buf(Buf),
    /// Several of them, gathered or scattered in their order.
    List(Box<[Segment]>),
}

/// A few bytes that travel in the request itself.
#[derive(Clone, Copy)]
pub struct Inline(Few);

/// What a request sends.
///
/// It is made of any [`Memory`], or of what that is made of; of `Bytes` and `String`, without a
/// copy where nobody else has the bytes; and of bytes and text that are in the program itself
/// (`b"hello"`), which travel in the request if they are not more than [`MOST_INLINE`], and are
/// copied otherwise.
pub enum Data {
    /// A copy of a few bytes, made when it was posted.
    Inline(Inline),
    /// Bytes that stay where they are until the request completes.
    Memory(Memory),
}

/// What a request does, and with which memory of the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Puts the data into the peer's next receive, and completes that.
    Send,
    /// Puts the data into the peer's registered memory. With an attachment, a receive is completed,
    /// too.
    Write {
        /// Where, by the addresses of the peer's registration.
        address: RemoteAddr,
        /// The peer's key.
        rkey: Rkey,
    },
    /// Fetches from the peer's registered memory, as much as the request's own has room for.
    Read {
        /// Where from.
        address: RemoteAddr,
        /// The peer's key.
        rkey: Rkey,
    },
    /// Replaces a word of the peer's if it is as expected.
    CompareSwap {
        /// Which: an address that 8 divides.
        address: RemoteAddr,
        /// The peer's key.
        rkey: Rkey,
        /// What it is expected to be.
        compare: u64,
        /// What it is to be then.
        swap: u64,
    },
    /// Adds to a word of the peer's, wrapping around.
    FetchAdd {
        /// Which: an address that 8 divides.
        address: RemoteAddr,
        /// The peer's key.
        rkey: Rkey,
        /// How much.
        add: u64,
    },
    /// Puts the data into the next receive of whichever queue pair it names, in one packet, if that
    /// arrives.
    Datagram {
        /// The way there.
        to: AddressId,
        /// The queue pair.
        qpn: Qpn,
        /// The key that lets it in.
        qkey: Qkey,
    },
}

/// What goes with a message into the completion of the receive that it takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Attachment {
    /// Nothing.
    #[default]
    Nothing,
    /// Four bytes.
    Imm(Imm),
    /// One of the receiver's keys: when the message is received, it is of no use any more. Goes
    /// with sends only, and for memory that was registered with [the
    /// right](super::Rights::REMOTE_INVALIDATE) to that.
    Invalidate(Rkey),
    /// Up to sixteen bytes. Goes with writes only, and only to peers that
    /// [take it](super::Sending::metadata), as [they have offered](super::Connection::metadata).
    Metadata(Metadata),
}

/// A message that is copied to where it leaves when it is posted, and kept nowhere: see
/// [`Nic::send_copied`](super::Nic::send_copied).
#[derive(Clone, Copy)]
pub struct Copied<'m> {
    /// What goes with it, if anything does.
    pub imm: Option<Imm>,
    /// Its bytes: some, and those behind them.
    pub bytes: [&'m [u8]; 2],
    /// Whether success is told, under the number 0. Failure always is.
    pub signalled: bool,
}

/// A request to do something at the peer.
pub struct WorkRequest {
    /// The program's own, returned with the completion.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// What to send, or where to put what is read.
    pub data: Data,
    /// What goes with the message.
    pub attached: Attachment,
    /// Whether success is told. Failure always is.
    pub signalled: bool,
    /// Whether somebody waits for this very completion, which is then hastened.
    pub awaited: bool,
    /// Whether the peer is to be woken for the receive that this completes.
    pub solicited: bool,
    /// Whether to wait, before beginning, until all reads and atomic operations before are
    /// complete. Everything else is carried out in order in any case.
    pub fenced: bool,
}

/// What a [plain](WorkRequest::plain) request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plain {
    Send,
    /// A send with an immediate.
    SendImm,
    Write,
    Read,
    /// An atomic operation.
    Atomic,
}

impl Plain {
    /// Whether it asks for something, which only an answer of its own completes.
    #[inline(always)]
    pub const fn asks(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

/// A place for a message that is to come.
pub struct ReceiveRequest {
    /// The program's own, returned with the completion.
    pub id: u64,
    /// Where to put the message.
    pub memory: Memory,
}

impl WorkRequest {
    fn new(id: u64, operation: Operation, data: Data) -> Self {
        Self {
            id,
            operation,
            data,
            attached: Attachment::Nothing,
            signalled: true,
            awaited: false,
            solicited: false,
            fenced: false,
        }
    }

    /// A signalled send.
    pub fn send(id: u64, data: impl Into<Data>) -> Self {
        Self::new(id, Operation::Send, data.into())
    }

    /// A signalled write to a peer's memory.
    pub fn write(id: u64, address: RemoteAddr, rkey: Rkey, data: impl Into<Data>) -> Self {
        Self::new(id, Operation::Write { address, rkey }, data.into())
    }

    /// A signalled read of a peer's memory, of as many bytes as `into` has room for.
    pub fn read(id: u64, address: RemoteAddr, rkey: Rkey, into: impl Into<Memory>) -> Self {
        Self::new(id, Operation::Read { address, rkey }, Data::Memory(into.into()))
    }

    /// A signalled exchange of a peer's word for `swap`, if it is `compare`. What it was comes with
    /// the completion.
    pub fn compare_swap(id: u64, address: RemoteAddr, rkey: Rkey, compare: u64, swap: u64) -> Self {
        let operation = Operation::CompareSwap { address, rkey, compare, swap };
        Self::new(id, operation, Data::Memory(Memory::None))
    }

    /// A signalled addition to a peer's word. What it was comes with the completion.
    pub fn fetch_add(id: u64, address: RemoteAddr, rkey: Rkey, add: u64) -> Self {
        let operation = Operation::FetchAdd { address, rkey, add };
        Self::new(id, operation, Data::Memory(Memory::None))
    }

    /// A signalled datagram.
    pub fn datagram(
        id: u64,
        (to, qpn, qkey): (AddressId, Qpn, Qkey),
        data: impl Into<Data>,
    ) -> Self {
        Self::new(id, Operation::Datagram { to, qpn, qkey }, data.into())
    }

    /// The same with an immediate.
    #[must_use]
    pub fn with_imm(self, imm: Imm) -> Self {
        Self { attached: Attachment::Imm(imm), ..self }
    }

    /// The same, taking a key of the receiver's back.
    #[must_use]
    pub fn with_invalidate(self, rkey: Rkey) -> Self {
        Self { attached: Attachment::Invalidate(rkey), ..self }
    }

    /// The same with metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: Metadata) -> Self {
        Self { attached: Attachment::Metadata(metadata), ..self }
    }

    /// The same, its success told to nobody.
    #[must_use]
    pub fn unsignalled(self) -> Self {
        Self { signalled: false, ..self }
    }

    /// The same, hastened, for somebody waits for it.
    #[must_use]
    pub fn awaited(self) -> Self {
        Self { awaited: true, ..self }
    }

    /// The same, waking the peer.
    #[must_use]
    pub fn solicited(self) -> Self {
        Self { solicited: true, ..self }
    }

    /// The same, behind all reads and atomic operations before it.
    #[must_use]
    pub fn fenced(self) -> Self {
        Self { fenced: true, ..self }
    }
}

impl Inline {
    /// A copy of `bytes`, if they are not more than [`MOST_INLINE`].
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        Few::new(bytes).map(Self)
    }

    /// The bytes of a word and of those behind it, the lowest first, if they are not more than
    /// [`MOST_INLINE`]: without a way through memory for who has them at hand.
    #[inline(always)]
    pub fn of_words(first: u64, words: &[u64]) -> Option<Self> {
        Few::of_words(first, words).map(Self)
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Memory {
    /// How many bytes it offers to be sent.
    #[inline]
    pub fn filled(&self) -> u64 {
        match self {
            Self::Buf(buf) => buf.len() as u64,
            other => other.room(),
        }
    }

    /// How many bytes may be received into it.
    #[inline]
    pub fn room(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Buf(buf) => buf.capacity() as u64,
            Self::Segment(segment) => u64::from(segment.len),
            Self::List(list) => list.iter().map(|segment| u64::from(segment.len)).sum(),
        }
    }

    /// The buffer, or an empty one if it is something else.
    #[inline]
    pub fn into_buf(self) -> Buf {
        match self {
            Self::Buf(buf) => buf,
            _ => Buf::default(),
        }
    }

    /// The parts of registered memory that it consists of.
    #[inline]
    pub(super) fn segments(&self) -> &[Segment] {
        match self {
            Self::None | Self::Buf(_) => &[],
            Self::Segment(segment) => std::slice::from_ref(segment),
            Self::List(list) => list,
        }
    }
}

impl Operation {
    /// What has been done when it was; `before` is what an atomic operation found.
    #[inline]
    pub(super) const fn done(self, before: u64) -> Done {
        match self {
            Self::Send | Self::Datagram { .. } => Done::Sent,
            Self::Write { .. } => Done::Written,
            Self::Read { .. } => Done::Read,
            Self::CompareSwap { .. } | Self::FetchAdd { .. } => Done::Atomic { before },
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Send => "a send",
            Self::Write { .. } => "a write",
            Self::Read { .. } => "a read",
            Self::CompareSwap { .. } => "a compare-and-swap",
            Self::FetchAdd { .. } => "a fetch-and-add",
            Self::Datagram { .. } => "a datagram",
        }
    }

    /// Whether it asks for something, which only an answer of its own completes.
    #[inline]
    pub(super) const fn asks(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }
}

impl Attachment {
    /// The immediate, if it is one.
    #[inline]
    pub const fn imm(&self) -> Option<Imm> {
        match *self {
            Self::Imm(imm) => Some(imm),
            _ => None,
        }
    }

    /// The metadata, if it is some.
    #[inline]
    pub const fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::Metadata(metadata) => Some(metadata),
            _ => None,
        }
    }
}

impl WorkRequest {
    /// Whether the peer needs a receive for it.
    #[inline]
    pub const fn takes_receive(&self) -> bool {
        matches!(self.operation, Operation::Send) || !matches!(self.attached, Attachment::Nothing)
    }

    /// Whether it is what most requests are: a send of bytes that lie in one piece, if need be with
    /// an immediate, a write of such and of nothing else, a read into one segment, or an atomic
    /// operation. It is one that a reliable connection can carry out, then, and takes its
    /// [data's](Data::len) length.
    #[inline(always)]
    pub(super) fn plain(&self) -> Option<Plain> {
        let in_one_piece = matches!(self.data, Data::Inline(_) | Data::Memory(Memory::Buf(_)));
        let sends = in_one_piece && !self.fenced;
        match (self.operation, self.attached) {
            (Operation::Send, Attachment::Nothing) if sends => Some(Plain::Send),
            (Operation::Send, Attachment::Imm(_)) if sends => Some(Plain::SendImm),
            (Operation::Write { .. }, Attachment::Nothing) if sends => Some(Plain::Write),
            _ => self.plainly_asks(),
        }
    }

    /// The same of those that ask for something.
    #[inline(always)]
    fn plainly_asks(&self) -> Option<Plain> {
        let alone = matches!(self.attached, Attachment::Nothing) && !self.fenced;
        match (&self.operation, &self.data) {
            (Operation::Read { .. }, Data::Memory(Memory::Segment(_))) if alone => {
                Some(Plain::Read)
            }
            (
                Operation::CompareSwap { .. } | Operation::FetchAdd { .. },
                Data::Memory(Memory::None),
            ) if alone => Some(Plain::Atomic),
            _ => None,
        }
    }

    /// How many bytes the message has, if this is a request that can be, with this service.
    #[inline(never)]
    pub(super) fn len(&self, service: Service) -> Option<u64> {
        use Attachment::{Imm, Invalidate, Metadata, Nothing};
        use Operation::{CompareSwap, Datagram, FetchAdd, Read, Send, Write};
        use Service::{Rc, Uc, Ud};
        match (service, &self.operation, &self.attached) {
            (Rc | Uc, Send | Write { .. }, Nothing | Imm(_))
            | (Rc, Send, Invalidate(_))
            | (Rc, Write { .. }, Metadata(_))
            | (Ud, Datagram { .. }, Nothing | Imm(_)) => Some(self.data.len()),
            (Rc, Read { .. } | CompareSwap { .. } | FetchAdd { .. }, Nothing) => self.asked_len(),
            _ => None,
        }
    }

    /// The same of a request that asks for something.
    fn asked_len(&self) -> Option<u64> {
        match (&self.operation, &self.data) {
            (Operation::Read { .. }, Data::Memory(memory)) => Some(memory.room()),
            (Operation::Read { .. }, Data::Inline(_)) => None,
            (_, Data::Memory(Memory::None)) => Some(0),
            _ => None,
        }
    }
}

impl Data {
    /// The bytes that it sends, if they lie in private memory, in one piece.
    #[inline]
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(inline) => Some(inline.bytes()),
            Self::Memory(Memory::Buf(buf)) => Some(buf),
            Self::Memory(_) => None,
        }
    }

    /// The parts of registered memory that it consists of otherwise.
    #[inline]
    pub(super) fn segments(&self) -> &[Segment] {
        match self {
            Self::Inline(_) => &[],
            Self::Memory(memory) => memory.segments(),
        }
    }

    /// The memory that it took with it.
    #[inline]
    pub(super) fn take_memory(&mut self) -> Memory {
        match self {
            Self::Inline(_) => Memory::None,
            Self::Memory(memory) => std::mem::take(memory),
        }
    }

    /// How many bytes it sends.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(inline) => inline.bytes().len() as u64,
            Self::Memory(memory) => memory.filled(),
        }
    }

    /// Whether it sends no bytes.
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

impl fmt::Debug for Copied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { imm, bytes, signalled } = self;
        f.debug_struct("Copied")
            .field("imm", imm)
            .field("len", &bytes.map(<[u8]>::len))
            .field("signalled", signalled)
            .finish()
    }
}

impl fmt::Debug for WorkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkRequest")
            .field("id", &self.id)
            .field("operation", &self.operation)
            .field("data", &self.data)
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReceiveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiveRequest {{ id: {}, memory: {:?} }}", self.id, self.memory)
    }
}
