//! The requester: what is sent, sent again, and completed.

pub(crate) mod acknowledgements;
pub(crate) mod completing;
pub(crate) mod copied_sends;
pub(crate) mod datagrams;
pub(crate) mod delivery;
pub(crate) mod delivery_failures;
pub(crate) mod fast_path;
pub(crate) mod headers;
pub(crate) mod implied_acknowledgements;
pub(crate) mod mapped_writes;
pub(crate) mod packets;
pub(crate) mod reads_and_atomics;
pub(crate) mod responses;
pub(crate) mod retransmission;
pub(crate) mod sending;
