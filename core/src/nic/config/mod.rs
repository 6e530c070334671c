//! How NICs, queue pairs and connections are configured, and the states of a queue pair.

pub(crate) mod connection;
pub(crate) mod errors;
pub(crate) mod nic;
pub(crate) mod numbering;
pub(crate) mod queue_pair;
pub(crate) mod queue_pair_state;
