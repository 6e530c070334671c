//! Messages as streams, on each device, on a network with faults, and from peers that break the
//! rules or are killed.

mod common;
mod everywhere;
mod failing;
mod pacing;
mod pieces;
