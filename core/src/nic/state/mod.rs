//! The state of a NIC's queue pairs, and what they share: structs with small methods of their own.

pub(crate) mod addresses;
pub(crate) mod arrivals;
pub(crate) mod common;
pub(crate) mod delivery_failures;
pub(crate) mod full_links;
pub(crate) mod management;
pub(crate) mod probe;
pub(crate) mod queue_pair;
pub(crate) mod requester;
pub(crate) mod responder;
pub(crate) mod responder_resources;
pub(crate) mod retransmission_timeout;
pub(crate) mod turns;
