//! Joining a world: its processes connect to each other.
//!
//! | file | what it does |
//! |---|---|
//! | `enter` | joins from end to end, and makes the world |
//! | `pairs` | connects a queue pair to each other process, and maps heaps |
//! | `messages` | opens endpoints and the group, and connects them |
//! | `joining` | is the process that joins, with what it has opened, and repeats attempts |
//! | `watch` | records which processes have gone, once all are connected |
//! | `introductions`, `membership` | the data that two processes exchange, and the errors of joining |
//! | `room` | whether the limits of the process allow what a world takes |
//! | `key` | whether a world needs a key, and whether its key can have been drawn |
//!
//! Each file uses only those below it. The folder is given NICs, routes and a configuration, and
//! returns a [`World`](crate::World) or a [`JoinError`].

mod enter;
mod introductions;
mod joining;
mod key;
mod membership;
mod messages;
mod pairs;
mod room;
mod watch;

pub(crate) use joining::{Kin, LONGEST, nic_config, shared_nic_config, threads_of_nic};
pub use membership::{JoinError, Membership};
