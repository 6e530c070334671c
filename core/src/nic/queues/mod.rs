//! The rings between programs and their NIC: work queues, receive queues, completion queues.

pub(crate) mod completion_queue;
pub(crate) mod completion_slots;
mod debug;
pub(crate) mod doorbells;
pub(crate) mod ends;
pub(crate) mod errors;
pub(crate) mod posted;
pub(crate) mod receive_queue;
pub(crate) mod receives;
pub(crate) mod send_queue;
pub(crate) mod shared_receive_queue;
pub(crate) mod shared_with_program;
