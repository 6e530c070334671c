//! Work requests and receive requests, as a program posts them.

use std::fmt;

use crate::nic::identifiers::AddressId;
use crate::nic::requests::memory::{Data, Memory};
use crate::wire::{Imm, Metadata, Qkey, Qpn, RemoteAddr, Rkey};

/// The operation of a request, and the memory of the peer's that it is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Puts the data into the peer's next receive, and completes that receive.
    Send,
    /// Puts the data into the peer's registered memory. A write with an attachment also completes a
    /// receive of the peer's.
    Write {
        /// Where the data goes, by the addresses of the peer's registration.
        address: RemoteAddr,
        /// The remote key of the peer's registration.
        rkey: Rkey,
    },
    /// Fetches as many bytes from the peer's registered memory as the request's own memory has room
    /// for.
    Read {
        /// Where the data comes from, by the addresses of the peer's registration.
        address: RemoteAddr,
        /// The remote key of the peer's registration.
        rkey: Rkey,
    },
    /// Replaces a word of the peer's memory if it has the expected value.
    CompareSwap {
        /// The address of the word that is compared, a multiple of 8.
        address: RemoteAddr,
        /// The remote key of the peer's registration.
        rkey: Rkey,
        /// The value that the word is expected to have.
        compare: u64,
        /// The value that the word is given if it has the expected one.
        swap: u64,
    },
    /// Adds to a word of the peer's memory, wrapping around.
    FetchAdd {
        /// The address of the word that is added to, a multiple of 8.
        address: RemoteAddr,
        /// The remote key of the peer's registration.
        rkey: Rkey,
        /// The number that is added to the word.
        add: u64,
    },
    /// Puts the data into the next receive of whichever queue pair the request names, in one
    /// packet, if that packet arrives.
    Datagram {
        /// The address that the datagram is sent to.
        to: AddressId,
        /// The number of the queue pair at that address.
        qpn: Qpn,
        /// The Q_Key that the queue pair requires.
        qkey: Qkey,
    },
}

/// An attachment of a message, which goes into the completion of the receive that the message
/// takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Attachment {
    /// No attachment goes with the message.
    #[default]
    Nothing,
    /// Four bytes of immediate data.
    Imm(Imm),
    /// A remote key of the receiver's, which is invalidated when the message is received. It goes
    /// with sends only, and for memory that was registered with [the
    /// right](crate::nic::Rights::REMOTE_INVALIDATE) to that.
    Invalidate(Rkey),
    /// Up to sixteen bytes of metadata. They go with writes only, and only to peers that [take
    /// metadata](crate::nic::Sending::metadata), as [they have
    /// offered](crate::nic::Connection::metadata).
    Metadata(Metadata),
}

/// A message that is copied into the device when it is posted, and kept nowhere: see
/// [`Nic::send_copied`](crate::nic::Nic::send_copied).
#[derive(Clone, Copy)]
pub struct Copied<'m> {
    /// The immediate data that goes with the message, if any.
    pub imm: Option<Imm>,
    /// The bytes of the message, in two parts, the second of which may be empty.
    pub bytes: [&'m [u8]; 2],
    /// Whether a success has a completion, which bears the number 0. A failure always has one.
    pub signalled: bool,
}

/// A request of the program's to do something at the peer.
pub struct WorkRequest {
    /// A number of the program's own, returned with the completion.
    pub id: u64,
    /// The operation that the request asks for.
    pub operation: Operation,
    /// The data to send, or the memory to put what is read into.
    pub data: Data,
    /// The attachment that goes with the message into the receiver's completion.
    pub attached: Attachment,
    /// Whether a success has a completion. A failure always has one.
    pub signalled: bool,
    /// Whether the program waits for this very completion: then an acknowledgement is asked for at
    /// once.
    pub awaited: bool,
    /// Whether the peer is to be woken for the receive that this request completes.
    pub solicited: bool,
    /// Whether the request is begun only after all reads and atomic operations before it are
    /// complete. Everything else is carried out in order in any case.
    pub fenced: bool,
}

/// A receive request: memory of the program's for a message that is to come.
pub struct ReceiveRequest {
    /// A number of the program's own, returned with the completion.
    pub id: u64,
    /// The memory that the message is put into.
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

    /// Makes a signalled send.
    pub fn send(id: u64, data: impl Into<Data>) -> Self {
        Self::new(id, Operation::Send, data.into())
    }

    /// Makes a signalled write to a peer's memory.
    pub fn write(id: u64, address: RemoteAddr, rkey: Rkey, data: impl Into<Data>) -> Self {
        Self::new(id, Operation::Write { address, rkey }, data.into())
    }

    /// Makes a signalled read of a peer's memory, of as many bytes as `into` has room for.
    pub fn read(id: u64, address: RemoteAddr, rkey: Rkey, into: impl Into<Memory>) -> Self {
        Self::new(id, Operation::Read { address, rkey }, Data::Memory(into.into()))
    }

    /// Makes a signalled compare-and-swap, which replaces a word of the peer's by `swap` if it is
    /// `compare`. The completion says what the word was before.
    pub fn compare_swap(id: u64, address: RemoteAddr, rkey: Rkey, compare: u64, swap: u64) -> Self {
        let operation = Operation::CompareSwap { address, rkey, compare, swap };
        Self::new(id, operation, Data::Memory(Memory::None))
    }

    /// Makes a signalled fetch-and-add to a word of the peer's. The completion says what the word
    /// was before.
    pub fn fetch_add(id: u64, address: RemoteAddr, rkey: Rkey, add: u64) -> Self {
        let operation = Operation::FetchAdd { address, rkey, add };
        Self::new(id, operation, Data::Memory(Memory::None))
    }

    /// Makes a signalled datagram to a queue pair at an address.
    pub fn datagram(
        id: u64,
        (to, qpn, qkey): (AddressId, Qpn, Qkey),
        data: impl Into<Data>,
    ) -> Self {
        Self::new(id, Operation::Datagram { to, qpn, qkey }, data.into())
    }

    /// Returns the request with immediate data.
    #[must_use]
    pub fn with_imm(self, imm: Imm) -> Self {
        Self { attached: Attachment::Imm(imm), ..self }
    }

    /// Returns the request such that it invalidates a remote key of the receiver's.
    #[must_use]
    pub fn with_invalidate(self, rkey: Rkey) -> Self {
        Self { attached: Attachment::Invalidate(rkey), ..self }
    }

    /// Returns the request with metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: Metadata) -> Self {
        Self { attached: Attachment::Metadata(metadata), ..self }
    }

    /// Returns the request such that a success has no completion.
    #[must_use]
    pub fn unsignalled(self) -> Self {
        Self { signalled: false, ..self }
    }

    /// Returns the request such that its completion is hastened, since the program waits for it.
    #[must_use]
    pub fn awaited(self) -> Self {
        Self { awaited: true, ..self }
    }

    /// Returns the request such that its message wakes the peer.
    #[must_use]
    pub fn solicited(self) -> Self {
        Self { solicited: true, ..self }
    }

    /// Returns the request such that it waits for all reads and atomic operations before it.
    #[must_use]
    pub fn fenced(self) -> Self {
        Self { fenced: true, ..self }
    }
}

impl Operation {
    /// The name of the operation in messages of errors.
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

    /// Whether the operation is a read or an atomic operation, which only a response of its own
    /// completes, and no acknowledgement.
    #[inline]
    pub(crate) const fn needs_response(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }
}

impl Attachment {
    /// The immediate data, if the attachment is immediate data.
    #[inline]
    pub const fn imm(&self) -> Option<Imm> {
        match *self {
            Self::Imm(imm) => Some(imm),
            _ => None,
        }
    }

    /// The metadata, if the attachment is metadata.
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
