//! What devices ask of Linux, and all of this crate's unsafe code.
//!
//! System calls go through `rustix`, which makes them without the C library: its functions are
//! points of cancellation, which costs 60 ns a call in a process of several threads. `libc` is for
//! what no crate wraps.

pub(crate) mod deferred_close;
pub(crate) mod epoll;
pub(crate) mod epoll_timer;
pub(crate) mod error;
pub(crate) mod ethtool;
pub(crate) mod filter;
pub(crate) mod interface;
pub(crate) mod limit;
pub(crate) mod mapping;
mod option;
pub(crate) mod packet;
mod random;
mod sock_diag;
pub(crate) mod thread;
pub(crate) mod udp;
pub(crate) mod unix;
pub(crate) mod virtio;

pub use random::random;
