//! The rings between programs and their NIC: work queues, receive queues, completion queues.

pub(crate) mod completion;
pub(crate) mod completions;
mod debug;
pub(crate) mod doorbells;
pub(crate) mod ends;
pub(crate) mod errors;
pub(crate) mod posted;
pub(crate) mod receive;
pub(crate) mod receives;
pub(crate) mod send;
pub(crate) mod shared_receive;
pub(crate) mod shared_with_program;
