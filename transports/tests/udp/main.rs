//! What `udp` does beside what every device must.

mod common;
mod named;
mod sockets;
mod strangers;
mod unreachable;
mod wildcards;
