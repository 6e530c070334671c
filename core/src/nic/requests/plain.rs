//! Plain requests, which most are, and whether a request is valid for a service.

use crate::nic::requests::memory::{Data, Memory};
use crate::nic::requests::work_request::{Attachment, Operation, WorkRequest};
use crate::wire::Service;

/// What a [plain](WorkRequest::plain) request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plain {
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
    pub const fn needs_response(self) -> bool {
        matches!(self, Self::Read | Self::Atomic)
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

    /// The same of those that ask for something.
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

    /// How many bytes the message has, if this is a request that can be, with this service.
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

    /// The same of a request that asks for something.
    fn read_or_atomic_len(&self) -> Option<u64> {
        match (&self.operation, &self.data) {
            (Operation::Read { .. }, Data::Memory(memory)) => Some(memory.room()),
            (Operation::Read { .. }, Data::Inline(_)) => None,
            (_, Data::Memory(Memory::None)) => Some(0),
            _ => None,
        }
    }

    /// Whether it is about the peer's memory, and not its receives alone.
    #[inline(always)]
    pub(crate) fn accesses_memory(&self) -> bool {
        !matches!(self.operation, Operation::Send)
            || matches!(self.attached, Attachment::Invalidate(_))
    }
}
