//! The NIC itself: its tables and its turns.

pub(crate) mod arrival;
pub(crate) mod completion_queues;
pub(crate) mod datagrams;
pub(crate) mod delivery;
pub(crate) mod delivery_failures;
pub(crate) mod events;
pub(crate) mod full_links;
pub(crate) mod keep_alive;
pub(crate) mod memory;
pub(crate) mod nic;
pub(crate) mod queue_pairs;
pub(crate) mod sending;
pub(crate) mod shared_receive_queues;
pub(crate) mod time;
