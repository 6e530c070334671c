//! A station: its addresses, and its interface to a NIC.

pub(crate) mod addressing;
pub(crate) mod port;
