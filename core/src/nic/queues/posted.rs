//! Posted requests: a request in its work queue.

use std::cell::Cell;

use crate::nic::requests::memory::Memory;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::WorkRequest;
use crate::wire::Psn;

/// A request in its work queue.
pub(crate) struct Posted {
    pub request: WorkRequest,
    pub len: u32,
    /// How the request is [plain](WorkRequest::plain), if it is.
    pub plain: Option<Plain>,
    /// Whether the request is a plain send or write, and signalled: then it always has a
    /// completion, and no response of its own.
    pub simple: bool,
    /// On a lossless device, the ticket of the request's last packet, once that was sent.
    pub ticket: Cell<u64>,
    /// On a lossless device, the sequence number behind the request's last packet, once that was
    /// sent.
    pub psn_beyond: Cell<Psn>,
    /// Whether the request is a write into mapped memory that was carried out here, without a
    /// packet.
    pub written_locally: Cell<bool>,
    /// Whether the request's bytes were not kept, so that it can't be sent again.
    pub unkept: bool,
}

impl Posted {
    /// Makes the entry of a message that was sent and not kept, of which only the place in the
    /// order of the queue is left.
    #[inline(always)]
    pub fn unkept(signalled: bool, ticket: u64, beyond: Psn) -> Self {
        let request = WorkRequest { signalled, ..WorkRequest::send(0, Memory::None) };
        let (ticket, beyond, placed) = (Cell::new(ticket), Cell::new(beyond), Cell::new(false));
        let plain = Some(Plain::Send);
        Self {
            request,
            len: 0,
            plain,
            simple: signalled,
            ticket,
            psn_beyond: beyond,
            written_locally: placed,
            unkept: true,
        }
    }

    /// Notes the ticket of the request's last packet, which was sent, and the sequence number
    /// behind it.
    #[inline(always)]
    pub fn sent(&self, ticket: u64, beyond: Psn) {
        self.ticket.set(ticket);
        self.psn_beyond.set(beyond);
    }

    /// Whether the request is a read or an atomic operation, which only a response of its own
    /// completes, and no acknowledgement.
    #[inline(always)]
    pub fn needs_response(&self) -> bool {
        !self.simple && self.request.operation.needs_response()
    }
}
