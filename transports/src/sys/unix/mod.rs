//! Unix sockets by abstract names, which nobody has to remove, with the descriptors and the memory
//! that are passed along them, and the processes at their ends.
//!
//! Whoever is connected may pass descriptors, and whoever closes the last one to an open file may
//! have to wait for that: a TCP socket lingers, for as long as its sender has set. So until a peer
//! is known to be trusted, the kernel is told to let no descriptors in
//! ([`Socket::let_descriptors_in`]), which it can since Linux 6.16; and a socket that may hold some
//! is closed by [a thread of its own](super::deferred_close).

mod credentials;
mod message;
mod name;
mod peer_process;
mod sealed_memory;
mod socket;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use credentials::own_user;
pub(crate) use message::{PassedFd, ReceivedMessage};
pub(crate) use name::{holder, is_anothers};
pub use peer_process::PeerProcess;
pub(crate) use sealed_memory::{Sealed, Words};
pub(crate) use socket::{Claim, Listener, Reserve, Socket};
