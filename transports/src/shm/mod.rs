//! Shared memory among the processes and threads of one machine, which find each other by name.
//!
//! Two linked devices share two rings of cache lines, one each way, in memory that nobody can shrink. A
//! record in a ring is a packet and nothing else: see [`shm_record`](doorbell_core::encap::shm_record).
//! No packet can be lost, so there is no ICRC, and how far a ring was read is the acknowledgement.
//!
//! Devices may link up if they are in the same network namespace and run as the same user: each
//! side asks the kernel who the other is before it sends a message. A user who has no number in
//! this user namespace is never the same as another. A name belongs to the device that joined by it
//! first, whichever its user, until that device is dropped; errors say who has a name. Names leave
//! nothing behind when their processes end, and neither do memory and sockets, which have no names
//! in any file system. A peer that leaves or dies closes its socket, of which this side's kernel
//! tells. If a process has forked without `exec` and is killed, the fork keeps the socket open.
//!
//! Peers map memory that is passed by descriptor. From strangers, the kernel lets no descriptors
//! in, if it can (Linux 6.16 and newer). Unwanted descriptors are closed by a thread of its own,
//! since a close may take any time.
//!
//! A message that comes while its receiver polls costs the way of one cache line and no system
//! call. A receiver that [arms](crate::Device::arm) its device says so in the ring, and is then
//! woken by the socket, once.

mod callers;
mod calls;
mod device;
pub(crate) mod fuzz;
mod handshakes;
mod limits;
mod link;
mod links;
mod message;
#[cfg(test)]
mod not_accepting;
mod open;
mod reach;
mod receiving;
mod ring;
mod sleep;
mod slot_set;
mod state;

pub use limits::Limits;
pub use state::Shm;
