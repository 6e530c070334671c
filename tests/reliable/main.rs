//! Reliable connections between NICs on a simulated fabric.

mod acks;
mod answers;
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
mod reads;
mod receivers;
mod regressions;
mod states;
