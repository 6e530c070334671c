//! The requester: which requests are sent, in which packets, when they are sent again, and how they
//! complete.

pub(crate) mod acknowledgements;
pub(crate) mod completing;
pub(crate) mod congestion;
pub(crate) mod copied_sends;
pub(crate) mod datagrams;
pub(crate) mod delivery;
pub(crate) mod fast_path;
pub(crate) mod headers;
pub(crate) mod implied_acknowledgements;
pub(crate) mod mapped_writes;
pub(crate) mod packets;
pub(crate) mod reads_and_atomics;
pub(crate) mod repairing;
pub(crate) mod responses;
pub(crate) mod retransmission;
pub(crate) mod sending;
