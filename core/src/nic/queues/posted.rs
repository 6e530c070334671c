//! A request in its work queue.

use std::cell::Cell;

use crate::nic::requests::memory::Memory;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::WorkRequest;
use crate::wire::Psn;

/// A request in its ring.
pub(crate) struct Posted {
    pub request: WorkRequest,
    pub len: u32,
    /// Whether, and how, it is [plain](WorkRequest::plain).
    pub plain: Option<Plain>,
    /// Whether it is a plain send or write, and signalled: then there is nothing else to be told
    /// of.
    pub simple: bool,
    /// The device's ticket of its last packet, and the number behind that, once that was sent on a
    /// lossless device.
    pub ticket: Cell<u64>,
    pub psn_beyond: Cell<Psn>,
    /// Whether it is a write that was carried out here.
    pub written_locally: Cell<bool>,
    /// Whether its bytes are gone, and it can't be sent again.
    pub unkept: bool,
}

impl Posted {
    /// A message that was sent, and of which nothing is left but its place in the order.
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

    /// Its last packet was sent.
    #[inline(always)]
    pub fn sent(&self, ticket: u64, beyond: Psn) {
        self.ticket.set(ticket);
        self.psn_beyond.set(beyond);
    }

    /// Whether it asks for something, which only an answer of its own completes.
    #[inline(always)]
    pub fn needs_response(&self) -> bool {
        !self.simple && self.request.operation.needs_response()
    }
}
