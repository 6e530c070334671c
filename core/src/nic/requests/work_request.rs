//! Work requests and receive requests, as a program posts them.

use std::fmt;

use crate::nic::identifiers::AddressId;
use crate::nic::requests::memory::{Data, Memory};
use crate::wire::{Imm, Metadata, Qkey, Qpn, RemoteAddr, Rkey};

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
    /// right](crate::nic::Rights::REMOTE_INVALIDATE) to that.
    Invalidate(Rkey),
    /// Up to sixteen bytes. Goes with writes only, and only to peers that
    /// [take it](crate::nic::Sending::metadata), as [they have offered](crate::nic::Connection::metadata).
    Metadata(Metadata),
}

/// A message that is copied to where it leaves when it is posted, and kept nowhere: see
/// [`Nic::send_copied`](crate::nic::Nic::send_copied).
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

impl Operation {
    pub(crate) const fn name(&self) -> &'static str {
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
    pub(crate) const fn needs_response(&self) -> bool {
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
