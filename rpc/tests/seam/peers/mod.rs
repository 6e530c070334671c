//! Peers in another process that die, or are stopped: what is noticed, when, and what becomes of
//! calls.

mod client;
mod common;
mod server;
mod udp;
