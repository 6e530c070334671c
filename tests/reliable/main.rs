//! Reliable connections between NICs on a simulated fabric.

mod absent;
mod acks;
mod common;
mod crowd;
mod devices;
mod goodput;
mod keys;
mod lossless;
mod messages;
mod partition;
mod posting;
mod random;
mod receivers;
mod regressions;
mod states;
