//! What the NIC asks of a device, and what a device tells the NIC.

pub(crate) mod flow;
pub(crate) mod inbox;
pub(crate) mod outbox;
pub(crate) mod receive;
