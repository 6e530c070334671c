//! One process's part in a group: its endpoint, its connections to other members, and its leave.
//!
//! The folder is told which members to reach and when to leave. It tells the mailbox what other
//! members send, and who of them has gone.

pub(in crate::group) mod core;
pub(in crate::group) mod leaving;
