//! Messages as streams, on each device, on a network with faults, and from peers that break the
//! rules or are killed.

mod common;
mod everywhere;
mod fabric;
mod failing;
mod hostile;
mod killed;
mod pacing;
mod pieces;
mod virtual_time;
