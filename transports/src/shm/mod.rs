//! Shared memory: processes and threads of one machine, found by name.
//!
//! Two rings of cache lines between each two of them, in memory that nobody can shrink; a record in
//! a ring is a packet and nothing else ([`shm_record`](doorbell_core::encap::shm_record)). Nothing can be lost,
//! so there is no ICRC, and how far a ring was read is the acknowledgement.
//!
//! Whoever runs as the same user in the same network namespace may link up: each side asks the kernel
//! who the other is before it says a word. A user who has no number in this user
//! namespace is the same as nobody, and neither is this process's if it has none. A name belongs to
//! whoever joined by it first, of any user, until he leaves; errors say who that is. Names leave
//! nothing behind, nor does any of this: memory and sockets are unnamed and go with the last who
//! holds them. A peer that leaves or dies closes its socket, of which this side's kernel tells; of a
//! process that has forked without `exec` and is killed, the fork keeps it open.
//!
//! Peers map memory that is passed by descriptor. From strangers the kernel lets none in, if it can
//! (Linux 6.16 and newer). What must be thrown away is closed by a thread of its own, since that may
//! take any time.
//!
//! A message that comes while its receiver polls costs one cache line's way and no system call. Who
//! [arms](Device::arm) says so in the ring, and is then woken by the socket, once.

mod attention;
mod callers;
mod calls;
mod device;
pub(crate) mod fuzz;
mod handshakes;
#[cfg(test)]
mod held_up;
mod limits;
mod link;
mod links;
mod message;
mod open;
mod receiving;
mod ring;
mod sleep;
mod slot_set;
mod state;

pub use limits::Limits;
pub use state::Shm;
