//! What `udp` does beside what every device must.

mod common;
mod named;
mod sockets;
mod strangers;
mod towards;
mod unreachable;
mod wildcards;
