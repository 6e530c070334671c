//! What becomes of a request of the peer's.

use crate::nic::protection::registration::KeyError;
use crate::nic::requests::completion::Done;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::work_request::Attachment;
use crate::wire::{Nak, RemoteAddr};

/// What a receive's completion says of its message.
pub(crate) struct ReceivedMessage {
    pub done: Done,
    pub len: u32,
    pub attached: Attachment,
    pub solicited: bool,
}

/// How a requester is told that its request was taken.
pub(crate) enum Reply {
    Acknowledgement,
    Response,
}

/// Why a request is not taken.
pub(crate) enum Refusal {
    NotReady,
    /// For good: what the peer is told, and what is noted here.
    Fatal(Nak, Cause),
}

impl Refusal {
    pub const INVALID: Self = Self::Fatal(Nak::InvalidRequest, Cause::InvalidRequest);

    pub fn access(why: KeyError) -> Self {
        Self::Fatal(Nak::RemoteAccess, Cause::Access(why))
    }

    /// Refuses the access to so many bytes at an address, and logs which.
    #[cold]
    pub fn access_to((address, len): (RemoteAddr, u64), why: KeyError) -> Self {
        tracing::debug!(%why, address = %format_args!("{:#x}", address.0), len, "refused access");
        Self::access(why)
    }
}
