//! Outcomes: what becomes of a request of the peer's, and of the receive that it takes.

use crate::nic::protection::registration::KeyError;
use crate::nic::requests::completion::Done;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::work_request::Attachment;
use crate::wire::{Nak, RemoteAddr};

/// A received message, as the completion of its receive describes it.
pub(crate) struct ReceivedMessage {
    pub done: Done,
    pub len: u32,
    pub attached: Attachment,
    pub solicited: bool,
}

/// How the peer's requester learns that its request was executed.
pub(crate) enum Reply {
    /// The peer is sent an acknowledgement.
    Acknowledgement,
    /// The peer is sent a response with data, which acknowledges the request, too.
    Response,
}

/// Why a request is refused.
pub(crate) enum Refusal {
    /// No receive is posted: the peer is sent an RNR NAK, and tries again.
    NotReady,
    /// The request breaks the connection: the peer is sent this NAK, and the queue pair breaks with
    /// this cause.
    Fatal(Nak, Cause),
}

impl Refusal {
    /// Refuses a request that is invalid.
    pub const INVALID: Self = Self::Fatal(Nak::InvalidRequest, Cause::InvalidRequest);

    /// Refuses an access to memory that is not allowed.
    pub fn access(why: KeyError) -> Self {
        Self::Fatal(Nak::RemoteAccess, Cause::Access(why))
    }

    /// Refuses the access to `len` bytes at an address, and logs which.
    #[cold]
    pub fn access_to(address: RemoteAddr, len: u64, why: KeyError) -> Self {
        tracing::debug!(%why, address = %format_args!("{:#x}", address.0), len, "refused access");
        Self::access(why)
    }
}
