//! Plain requests: the most common shapes, for which the fast paths are made. And whether a request
//! is valid for a service.

use crate::nic::requests::memory::{Data, Memory};
use crate::nic::requests::work_request::{Attachment, Operation, WorkRequest};
use crate::wire::Service;

/// The shape of a [plain](WorkRequest::plain) request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plain {
    /// A send of bytes in one piece, with nothing attached.
    Send,
    /// A send of bytes in one piece with immediate data.
    SendImm,
    /// A write of bytes in one piece, with nothing attached.
    Write,
    /// A read into one segment.
    Read,
    /// An atomic operation of either kind.
    Atomic,
}

impl Plain {
    /// Whether only a response of its own completes the request, and no acknowledgement.
    #[inline(always)]
    pub const fn needs_response(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
    }
}

impl WorkRequest {
    /// Whether the peer needs a receive for the request.
    #[inline]
    pub const fn takes_receive(&self) -> bool {
        matches!(self.operation, Operation::Send) || !matches!(self.attached, Attachment::Nothing)
    }

    /// Returns how the request is plain, if it is: a send of bytes that lie in one piece, perhaps
    /// with an immediate, a write of such bytes with nothing attached, a read into one segment, or
    /// an atomic operation. A plain request is always valid on a reliable connection, and for sends
    /// and writes its length is that of its [data](Data::len).
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<Plain> {
        let in_one_piece = matches!(self.data, Data::Inline(_) | Data::Memory(Memory::Buf(_)));
        let sends = in_one_piece && !self.fenced;
        match (self.operation, self.attached) {
            (Operation::Send, Attachment::Nothing) if sends => Some(Plain::Send),
            (Operation::Send, Attachment::Imm(_)) if sends => Some(Plain::SendImm),
            (Operation::Write { .. }, Attachment::Nothing) if sends => Some(Plain::Write),
            _ => self.plain_read_or_atomic(),
        }
    }

    /// Returns how a read or an atomic operation is plain, if it is.
    #[inline(always)]
    fn plain_read_or_atomic(&self) -> Option<Plain> {
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

    /// Returns how many bytes the message has, or `None` if the request is not valid for this
    /// service.
    #[inline(never)]
    pub(crate) fn len(&self, service: Service) -> Option<u64> {
        use Attachment::{Imm, Invalidate, Metadata, Nothing};
        use Operation::{CompareSwap, Datagram, FetchAdd, Read, Send, Write};
        use Service::{Rc, Uc, Ud};
        match (service, &self.operation, &self.attached) {
            (Rc | Uc, Send | Write { .. }, Nothing | Imm(_))
            | (Rc, Send, Invalidate(_))
            | (Rc, Write { .. }, Metadata(_))
            | (Ud, Datagram { .. }, Nothing | Imm(_)) => Some(self.data.len()),
            (Rc, Read { .. } | CompareSwap { .. } | FetchAdd { .. }, Nothing) => {
                self.read_or_atomic_len()
            }
            _ => None,
        }
    }

    /// Returns how many bytes a read or an atomic operation puts into the request's own memory, or
    /// `None` if its memory is of the wrong kind.
    fn read_or_atomic_len(&self) -> Option<u64> {
        match (&self.operation, &self.data) {
            (Operation::Read { .. }, Data::Memory(memory)) => Some(memory.room()),
            (Operation::Read { .. }, Data::Inline(_)) => None,
            (_, Data::Memory(Memory::None)) => Some(0),
            _ => None,
        }
    }

    /// Whether the request accesses the peer's memory or its keys, and not the peer's receives
    /// alone.
    #[inline(always)]
    pub(crate) fn accesses_memory(&self) -> bool {
        !matches!(self.operation, Operation::Send)
            || matches!(self.attached, Attachment::Invalidate(_))
    }
}
