//! What `udp` does beside what every device must.

mod common;
mod sockets;
mod strangers;
mod unreachable;
